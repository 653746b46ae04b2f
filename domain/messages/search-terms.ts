import { invalid } from '../../platform/errors.ts';

/** One word, phrase or operator of `q`. */
export interface Term {
  negated: boolean;
  /** Empty for a plain word or phrase. */
  field: string;
  value: string;
  quoted: boolean;
}

/** Operators whose values are words of one part of the message. */
export const WORD_FIELDS = ['subject', 'from', 'to'] as const;
const FIELDS: readonly string[] = [...WORD_FIELDS, 'label', 'filename', 'has', 'before', 'after'];
const OPERATORS = [...FIELDS.map((field) => (field === 'has' ? 'has:attachment' : `${field}:`))].join(', ');

const MAX_TERMS = 50;

/** A colon before `//`, before a space or after other characters than letters (`https://…`, `10:30`) is ordinary text. */
const TERM = /(-?)(?:([a-zA-Z_][a-zA-Z_-]*):(?!\/\/))?(?:"([^"]*)"?|(\S+)|(?=\s|$))/gy;

/**
 * Splits `q` into clauses that must all match. A clause is one term, or several with `OR` between them.
 *
 * @throws AppError `validation_error` for an unknown operator, and for an `OR` without a word on both sides.
 */
export function parseTerms(q: string): Term[][] {
  const clauses: Term[][] = [];
  let termCount = 0;
  let joins = false;
  for (const term of readTerms(q)) {
    if (isOr(term)) {
      if (joins || clauses.length === 0) throw incompleteOr();
      joins = true;
      continue;
    }
    termCount += 1;
    if (joins) clauses.at(-1)?.push(term);
    else clauses.push([term]);
    joins = false;
  }
  if (joins) throw incompleteOr();
  if (termCount > MAX_TERMS)
    throw invalidQuery(`has ${termCount} terms; at most ${MAX_TERMS} are allowed`, 'Search for fewer words.');
  const unsupported = clauses
    .filter(({ length }) => length > 1)
    .flat()
    .find(({ field }) => !isWords(field));
  if (unsupported)
    throw invalidQuery(
      `has OR next to ${unsupported.field}:, which OR cannot combine`,
      'Use OR between words, phrases, subject:, from: and to:; send one request for each of the other values.',
    );
  return clauses;
}

export function isWords(field: string): boolean {
  return field === '' || (WORD_FIELDS as readonly string[]).includes(field);
}

function* readTerms(q: string): Generator<Term> {
  const text = q.trim();
  for (let position = 0; position < text.length; ) {
    TERM.lastIndex = position;
    const match = TERM.exec(text);
    if (!match) return;
    position = Math.max(TERM.lastIndex, position + 1);
    const term = toTerm(match);
    if (term.field !== '' || term.value.trim() !== '') yield term;
    while (/\s/.test(text[position] ?? '')) position += 1;
  }
}

function toTerm([whole, minus = '', name = '', phrase, word = '']: RegExpExecArray): Term {
  const field = name.toLowerCase();
  const negated = minus !== '';
  if (name === '' || FIELDS.includes(field))
    return { negated, field, value: phrase ?? word, quoted: phrase !== undefined };
  if (phrase === undefined && word === '')
    return { negated, field: '', value: whole.slice(minus.length), quoted: false };
  // As a word, an operator of another service would find nothing, and the caller would conclude that there is no such
  // message.
  throw invalidQuery(
    `has the unknown operator ${name.slice(0, 64)}:; known are ${OPERATORS}`,
    `Use one of ${OPERATORS}. To search for text with a colon, put it in quotes: "${whole.slice(minus.length).replaceAll('"', '').slice(0, 128)}".`,
  );
}

function isOr({ negated, field, value, quoted }: Term): boolean {
  return value === 'OR' && !negated && field === '' && !quoted;
}

function incompleteOr() {
  return invalidQuery(
    'has OR without a word on both sides',
    'Write word OR word, or put it in quotes to search for the word: "OR".',
  );
}

export function invalidQuery(message: string, fix: string) {
  return invalid('/query/q', message, fix);
}
