import { storableTime } from '../../platform/database/storable.ts';
import { invalidQuery, isWords, parseTerms, type Term } from './search-terms.ts';

/**
 * A parsed `q`: words and "phrases" that must all occur, `OR` between alternatives, `word*` for a prefix, `-` to exclude,
 * and the operators `from: to: subject: label: filename: has:attachment before: after:`.
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

/** All lexemes must be present. If negated, at least one must be absent. */
export interface Facet {
  lexemes: string[];
  negated: boolean;
  /** The last lexeme is a prefix. */
  prefix?: true;
}

export const MAX_QUERY_LENGTH = 1000;

/** The weight of each field's words in the search document (see `search_document`). */
const WEIGHTS: Record<string, string> = { subject: 'A', from: 'B', to: 'C' };

/**
 * @param q at most {@link MAX_QUERY_LENGTH} characters.
 * @throws AppError `validation_error` for an unknown operator, or one with a missing or invalid value.
 */
export function parseSearchQuery(q: string): SearchQuery {
  const query: SearchQuery = { words: '', facets: [] };
  const words: string[] = [];
  const clauses = parseTerms(q);
  for (let index = 0; index < clauses.length; index += 1) {
    const terms = clauses[index] ?? [];
    const code = findCode(clauses.slice(index));
    if (code.length > 1) {
      words.push(codeToTsquery(code));
      index += code.length - 1;
    } else if (terms.every(({ field }) => isWords(field))) words.push(joinAlternatives(terms.map(toTsquery)));
    else for (const term of terms) applyOperator(query, term);
  }
  return { ...query, words: words.join(' & ') };
}

/** The leading terms that may be one code, written in groups: `482 913`. */
function findCode(clauses: Term[][]): string[] {
  const groups: string[] = [];
  for (const [term, ...alternatives] of clauses) {
    const isGroup =
      term && !term.negated && !term.quoted && term.field === '' && /^\d{1,9}$/.test(term.value);
    if (!isGroup || alternatives.length > 0) break;
    groups.push(term.value);
  }
  return groups;
}

function codeToTsquery(groups: string[]): string {
  return joinAlternatives([
    groups.map(quoteLexeme).join(' & '),
    ...listCodeSpellings(groups.join('')).map(quoteLexeme),
  ]);
}

function joinAlternatives(operands: string[]): string {
  return operands.length > 1 ? `(${[...new Set(operands)].join(' | ')})` : (operands[0] ?? '');
}

function toTsquery({ negated, field, value, quoted }: Term): string {
  if (value.trim() === '') throw missingValue(field);
  const prefix = !quoted && value.length > 1 && value.endsWith('*') ? '*' : '';
  const text = foldWords(prefix ? value.slice(0, -1) : value);
  const flags = (WEIGHTS[field] ?? '') + prefix;
  // Folding removes a lone combining mark. PostgreSQL rejects an empty operand, but not a blank one, which matches nothing.
  const spellings = [
    text || ' ',
    ...(/^\d+(?:[ -]\d+)*$/.test(text) ? listCodeSpellings(text.replace(/[ -]/g, '')) : []),
  ];
  const operand = joinAlternatives(
    spellings.map((spelling) => `${quoteLexeme(spelling)}${flags === '' ? '' : `:${flags}`}`),
  );
  return `${negated ? '!' : ''}${operand}`;
}

function applyOperator(query: SearchQuery, { negated, field, value, quoted }: Term): void {
  if (value.trim() === '') throw missingValue(field);
  if (field === 'label') query.facets.push({ lexemes: [`l:${value}`], negated });
  else if (field === 'filename') query.facets.push({ ...readFilename(value, quoted), negated });
  else if (field === 'has') {
    if (!/^attachments?$/i.test(value))
      throw invalidQuery(`supports has:attachment, not has:${value}`, 'Use has:attachment, or filename:pdf.');
    query.facets.push({ lexemes: ['h:attachment'], negated });
  } else {
    if (negated)
      throw invalidQuery(`cannot negate ${field}:`, 'Use after: instead of -before:, and vice versa.');
    const time = parseDate(field, value);
    if (field === 'before') query.before = earlier(query.before, time);
    else query.after = later(query.after, time);
  }
}

/** Splits a file name into words as the SQL function `search_filename` does. */
function readFilename(value: string, quoted: boolean): Omit<Facet, 'negated'> {
  const prefix = !quoted && value.endsWith('*');
  const words = foldWords(value)
    .toLowerCase()
    .split(/[^0-9a-z\u0080-\uffff]+/)
    .filter(Boolean);
  if (words.length === 0)
    throw invalidQuery(
      'has no letter or digit after filename:',
      'Use filename:invoice, filename:pdf or filename:inv*.',
    );
  return { lexemes: words.map((word) => `n:${word}`), ...(prefix ? { prefix } : {}) };
}

/** A day (UTC) or a time with its offset, RFC 3339. */
function parseDate(field: string, value: string): Date {
  const wellFormed =
    /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i.test(value);
  const time = storableTime(wellFormed ? Date.parse(value) : Number.NaN);
  if (time === null || (value.length === 10 && !time.toISOString().startsWith(value)))
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

/** Codes have this many digits; years are ordinary words. */
const CODE = /^(?!(?:19|20)\d\d$)\d{4,10}$/;

/**
 * The ways to write the digits of a code: one word, or groups with spaces or hyphens between them (`482913`, `482 913`,
 * `482-913`). Empty if the digits do not look like a code.
 */
function listCodeSpellings(digits: string): string[] {
  if (!CODE.test(digits)) return [];
  const groupings = listGroupSizes(digits.length).map((sizes) => split(digits, sizes));
  return [digits, ...groupings.flatMap((groups) => [groups.join(' '), groups.join('-')])];
}

/** Two halves, equal groups of two or three digits, and single digits. */
function listGroupSizes(length: number): number[][] {
  const half = Math.floor(length / 2);
  const halves =
    length % 2 === 0
      ? [[half, half]]
      : [
          [half, half + 1],
          [half + 1, half],
        ];
  const equal = [2, 3]
    .filter((size) => length % size === 0 && length / size > 2)
    .map((size) => new Array<number>(length / size).fill(size));
  const single = length <= 8 ? [new Array<number>(length).fill(1)] : [];
  const asPhoneNumber = length === 10 ? [[3, 3, 4]] : [];
  return [...halves, ...equal, ...single, ...asPhoneNumber];
}

function split(digits: string, sizes: number[]): string[] {
  let start = 0;
  return sizes.map((size) => {
    start += size;
    return digits.slice(start - size, start);
  });
}

/**
 * Whether the best matches come first, not the newest ones.
 *
 * @throws AppError `validation_error` for a malformed `q`.
 */
export const isByRank = (q: string | undefined): boolean =>
  q !== undefined && parseSearchQuery(q).words !== '';
