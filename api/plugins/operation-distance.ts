import { findNearestName } from './nearest-name.ts';

/** Words that other mail services use for the same resource. */
const SYNONYMS: Readonly<Record<string, string>> = {
  email: 'messages',
  emails: 'messages',
  mail: 'messages',
  mails: 'messages',
  mailbox: 'inboxes',
  mailboxes: 'inboxes',
  accounts: 'inboxes',
  conversation: 'threads',
  conversations: 'threads',
  files: 'attachments',
  hooks: 'webhooks',
  subscriptions: 'webhooks',
  keys: 'api-keys',
  tokens: 'api-keys',
  apikeys: 'api-keys',
  organization: 'org',
  organizations: 'org',
  orgs: 'org',
  tags: 'labels',
};

/** Segments that say what a method says: `POST /messages/{id}/delete`. */
const METHODS_BY_WORD: Readonly<Record<string, string>> = {
  list: 'GET',
  all: 'GET',
  get: 'GET',
  fetch: 'GET',
  show: 'GET',
  create: 'POST',
  new: 'POST',
  add: 'POST',
  update: 'PATCH',
  edit: 'PATCH',
  patch: 'PATCH',
  delete: 'DELETE',
  remove: 'DELETE',
  destroy: 'DELETE',
};

/** The collection of the ids with a prefix. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  inb: 'inboxes',
  msg: 'messages',
  drf: 'drafts',
  thr: 'threads',
  att: 'attachments',
  dom: 'domains',
  evt: 'events',
  key: 'api-keys',
  whe: 'endpoints',
  whd: 'deliveries',
  whj: 'jobs',
};

const SKIPPED_SEGMENT = 1;
const OTHER_WORD = 1.5;
const SIMILAR_WORD = 0.3;
/** A word where an id is expected: perhaps a name, perhaps another operation. */
const WORD_FOR_ID = 0.8;
const ID_OF_ANOTHER_KIND = 0.5;

/** What a request asks for, as far as its method and path tell. */
export interface WantedOperation {
  method: string;
  segments: readonly string[];
}

/** Reads a segment at the end such as `delete` as a method. */
export function readVerb({ method, segments }: WantedOperation): WantedOperation {
  const verb = METHODS_BY_WORD[segments.at(-1) ?? ''];
  return verb === undefined ? { method, segments } : { method: verb, segments: segments.slice(0, -1) };
}

/** How far a word of a request is from one of an operation. */
export type CompareWords = (word: string, name: string) => number;

/** Longer words are no misspellings, and comparing them takes time. */
const MAX_COMPARED_LENGTH = 32;

/** Compares words, each pair once: the same words occur in most operations. */
export function createWordComparison(): CompareWords {
  const known = new Map<string, number>();
  return (word, name) => {
    if (word === name) return 0;
    if (word.length > MAX_COMPARED_LENGTH) return OTHER_WORD;
    const pair = `${word} ${name}`;
    const distance = known.get(pair) ?? compareWords(word, name);
    known.set(pair, distance);
    return distance;
  };
}

/** How far a request is from an operation; a smaller number is nearer. Infinite if they share no word. */
export function measureOperation(
  wanted: WantedOperation,
  operation: { method: string; segments: readonly string[] },
  compare: CompareWords,
): number {
  const { segments } = operation;
  const known = segments.filter((segment) => !isParameter(segment));
  if (!wanted.segments.some((word) => known.some((name) => compare(word, name) < OTHER_WORD)))
    return Number.POSITIVE_INFINITY;
  return alignSegments(wanted.segments, segments, compare) + compareMethods(wanted.method, operation.method);
}

/** Edit distance over segments. */
function alignSegments(
  wanted: readonly string[],
  segments: readonly string[],
  compare: CompareWords,
): number {
  let previous = segments.map((_, index) => (index + 1) * SKIPPED_SEGMENT);
  previous.unshift(0);
  for (const [row, word] of wanted.entries()) {
    const current = [(row + 1) * SKIPPED_SEGMENT];
    for (const [column, name] of segments.entries()) {
      const replaced =
        (previous[column] ?? 0) + compareSegments(word, name, { collection: segments[column - 1], compare });
      const skipped = Math.min(previous[column + 1] ?? 0, current[column] ?? 0) + SKIPPED_SEGMENT;
      current.push(Math.min(replaced, skipped));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}

const isParameter = (segment: string) => segment.startsWith('{');

function compareSegments(
  word: string,
  name: string,
  { collection, compare }: { collection: string | undefined; compare: CompareWords },
): number {
  if (!isParameter(name)) return looksLikeId(word) ? OTHER_WORD : compare(word, name);
  if (!looksLikeId(word)) return WORD_FOR_ID;
  const expected = COLLECTIONS[word.slice(0, word.indexOf('_'))];
  return expected === undefined || expected === collection ? 0 : ID_OF_ANOTHER_KIND;
}

function compareWords(word: string, name: string): number {
  if (SYNONYMS[word] === name) return SIMILAR_WORD;
  return findNearestName(word, [name]) === undefined ? OTHER_WORD : SIMILAR_WORD;
}

/** An id, an address, a number or a placeholder such as `{id}` and `:id`. */
function looksLikeId(word: string): boolean {
  return /^[a-z]{3}_|[@\d{}:]/.test(word);
}

function compareMethods(wanted: string, method: string): number {
  if (wanted === method || (wanted === 'HEAD' && method === 'GET')) return 0;
  const isChange = (name: string) => name === 'PUT' || name === 'PATCH';
  if (isChange(wanted) && isChange(method)) return 0.1;
  if (wanted === 'GET' || method === 'GET' || method === 'DELETE' || wanted === 'DELETE') return 0.6;
  return 0.3;
}
