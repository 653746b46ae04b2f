import { invalid } from '../../platform/errors.ts';

/**
 * A parsed `q`: words and "phrases" that must all occur, `word*` for a prefix, `-` to exclude, and the operators
 * `from: to: subject: label: has:attachment before: after:`.
 */
export interface SearchQuery {
  /** In the input syntax of PostgreSQL's `to_tsquery`, each term quoted; empty if `q` has no words. */
  words: string;
  /** Lexemes of `message_search.document` that must or must not be present. */
  facets: Facet[];
  /** Created before this time. */
  before?: Date;
  /** Created at or after this time. */
  after?: Date;
}

export interface Facet {
  lexeme: string;
  negated: boolean;
}

export const MAX_QUERY_LENGTH = 1000;
const MAX_TERMS = 50;

interface Term {
  negated: boolean;
  /** Empty for a plain word or phrase. */
  field: string;
  value: string;
  quoted: boolean;
}

/** The weight of each field's words in the search document (see `search_document`). */
const WEIGHTS: Record<string, string> = { subject: 'A', from: 'B', to: 'C' };
const FIELDS = [...Object.keys(WEIGHTS), 'label', 'has', 'before', 'after'];

/**
 * @param q at most {@link MAX_QUERY_LENGTH} characters.
 * @throws AppError `validation_error` for an operator with a missing or invalid value.
 */
export function parseSearchQuery(q: string): SearchQuery {
  const terms = parseTerms(q);
  if (terms.length > MAX_TERMS)
    throw invalidQuery(
      `has ${terms.length} terms; at most ${MAX_TERMS} are allowed`,
      'Search for fewer words.',
    );
  const query: SearchQuery = { words: '', facets: [] };
  const words: string[] = [];
  for (const term of terms) {
    const weight = WEIGHTS[term.field] ?? '';
    if (term.field === '' || weight !== '') words.push(toTsquery(term, weight));
    else applyOperator(query, term);
  }
  return { ...query, words: words.join(' & ') };
}

const TERM = /(-?)(?:([a-zA-Z]+):)?(?:"([^"]*)"?|(\S+)|(?=\s|$))/gy;

function parseTerms(q: string): Term[] {
  const terms: Term[] = [];
  const text = q.trim();
  for (let position = 0; position < text.length; ) {
    TERM.lastIndex = position;
    const match = TERM.exec(text);
    if (!match) break;
    position = Math.max(TERM.lastIndex, position + 1);
    const [whole, minus = '', name = '', phrase, word = ''] = match;
    const field = name.toLowerCase();
    const value = phrase ?? word;
    const quoted = phrase !== undefined;
    // A colon in ordinary text (`https://…`, `10:30`) is not an operator.
    if (name !== '' && !FIELDS.includes(field))
      terms.push({ negated: minus !== '', field: '', value: whole.slice(minus.length), quoted });
    else if (field !== '' || value.trim() !== '') terms.push({ negated: minus !== '', field, value, quoted });
    while (/\s/.test(text[position] ?? '')) position += 1;
  }
  return terms;
}

function toTsquery({ negated, field, value, quoted }: Term, weight: string): string {
  if (value.trim() === '') throw missingValue(field);
  const prefix = !quoted && value.length > 1 && value.endsWith('*') ? '*' : '';
  const text = foldWords(prefix ? value.slice(0, -1) : value);
  const flags = weight + prefix;
  // Folding removes a lone combining mark. PostgreSQL rejects an empty operand, but not a blank one, which matches nothing.
  return `${negated ? '!' : ''}${quoteLexeme(text || ' ')}${flags === '' ? '' : `:${flags}`}`;
}

function applyOperator(query: SearchQuery, { negated, field, value }: Term): void {
  if (value.trim() === '') throw missingValue(field);
  if (field === 'label') query.facets.push({ lexeme: `l:${value}`, negated });
  else if (field === 'has') {
    if (!/^attachments?$/i.test(value))
      throw invalidQuery(`supports has:attachment, not has:${value}`, 'Use has:attachment.');
    query.facets.push({ lexeme: 'h:attachment', negated });
  } else {
    if (negated)
      throw invalidQuery(`cannot negate ${field}:`, 'Use after: instead of -before:, and vice versa.');
    const time = parseDate(field, value);
    if (field === 'before') query.before = earlier(query.before, time);
    else query.after = later(query.after, time);
  }
}

/** A day (UTC) or a time with its offset, RFC 3339. */
function parseDate(field: string, value: string): Date {
  const wellFormed =
    /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i.test(value);
  const time = new Date(wellFormed ? value : Number.NaN);
  const sameDay =
    !Number.isNaN(time.getTime()) && (value.length > 10 || time.toISOString().startsWith(value));
  if (!sameDay)
    throw invalidQuery(
      `has no date after ${field}:`,
      `Use ${field}:2026-01-31 or ${field}:2026-01-31T12:00:00Z.`,
    );
  return time;
}

export const earlier = (a: Date | undefined, b: Date | undefined) => (a && b ? (a < b ? a : b) : (a ?? b));
export const later = (a: Date | undefined, b: Date | undefined) => (a && b ? (a > b ? a : b) : (a ?? b));

/**
 * Normalizes text like `search_words` in the database: removes accents and separates Chinese and Japanese characters.
 */
export function foldWords(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFKC')
    .replace(/([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])/g, ' $1 ');
}

/** Quotes any text as an operand of PostgreSQL's tsquery syntax. */
export function quoteLexeme(text: string): string {
  return `'${text.replace(/\\/g, '\\\\').replace(/'/g, "''")}'`;
}

function missingValue(field: string) {
  return invalidQuery(
    `has no value after ${field}:`,
    `Add a value right after ${field}: without a space, quoted if it contains spaces.`,
  );
}

function invalidQuery(message: string, fix: string) {
  return invalid('/query/q', message, fix);
}
