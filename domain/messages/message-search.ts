import { sql } from 'kysely';
import { escapeLike } from '../../platform/database/escape-like.ts';
import type { Db } from '../../platform/database/tables.ts';
import { invalid } from '../../platform/errors.ts';
import { type CursorKey, type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
import type { MessageFilter } from './message-filter.ts';
import {
  earlier,
  type Facet,
  later,
  parseSearchQuery,
  quoteLexeme,
  type SearchQuery,
} from './search-query.ts';

/** Whether the filter requires the search index. Without it, a list would have to read every message of the inbox. */
export function needsSearch({ q, label, from, to }: MessageFilter): boolean {
  return q !== undefined || label !== undefined || from !== undefined || to !== undefined;
}

/** Matches are ranked within windows of this many messages, newest window first. */
const WINDOW_SIZE = 1000;

interface Match {
  id: string;
  rank: number;
}

/**
 * Finds messages by their words, labels and addresses. With words in `q` the best matches come first, within windows of
 * the {@link WINDOW_SIZE} newest matches; otherwise matches are ordered by time. Takes one statement, or two if a page
 * spans windows.
 *
 * @returns ids in display order.
 * @throws AppError `validation_error` for a malformed `q`, or for words in `q` with `order=asc`.
 */
export async function searchMessages(
  db: Db,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<IdPage> {
  const query: SearchQuery = filter.q === undefined ? { words: '', facets: [] } : parseSearchQuery(filter.q);
  const find = (bounds: Bounds) => findMatches(db, scope, { filter, query, bounds });
  if (query.words === '') return pageByTime(find, page);
  if (page.order === 'asc')
    throw invalid(
      '/query/order',
      'cannot be asc if q contains words, because the best matches come first',
      'Omit order, or use before: and after: to select a period.',
    );
  return pageByRank(find, page);
}

/** A page that may end after any of its ids. */
export interface IdPage extends Page<string> {
  keyOf(id: string): CursorKey;
}

interface Bounds {
  below?: string | undefined;
  above?: string | undefined;
  ascending: boolean;
  limit: number;
}
type Find = (bounds: Bounds) => Promise<Match[]>;

async function pageByTime(find: Find, { order, limit, after }: PageRequest): Promise<IdPage> {
  const ascending = order === 'asc';
  const [last] = after ?? [];
  const matches = await find({
    ascending,
    ...(ascending ? { above: last } : { below: last }),
    limit: limit + 1,
  });
  const { items, next } = toPage(matches, limit, ({ id }) => [id]);
  return { items: items.map(({ id }) => id), next, keyOf: (id) => [id] };
}

/** The cursor of a page contains its window, by the id above its newest match, and the position of its last match. */
async function pageByRank(find: Find, { limit, after }: PageRequest): Promise<IdPage> {
  const [start, rank, id] = after ?? [];
  let below = start;
  let last = rank === undefined || id === undefined ? undefined : { rank: Number(rank), id };
  const found: (Match & { window: string })[] = [];
  for (;;) {
    const window = await find({ below, ascending: false, limit: WINDOW_SIZE });
    // The cursor keeps the start of the window, so that messages that arrive between pages do not shift its last
    // matches.
    const windowStart = below ?? `${window[0]?.id ?? ''}~`;
    const remaining = window.toSorted(byRank).filter((match) => !last || byRank(last, match) < 0);
    found.push(...remaining.map((match) => ({ ...match, window: windowStart })));
    if (found.length > limit || window.length < WINDOW_SIZE) break;
    below = window.at(-1)?.id;
    last = undefined;
  }
  const keyOfMatch = (match: (typeof found)[number]) => [match.window, String(match.rank), match.id];
  const { items, next } = toPage(found, limit, keyOfMatch);
  const keys = new Map(items.map((match) => [match.id, keyOfMatch(match)]));
  return { items: items.map((match) => match.id), next, keyOf: (id) => keys.get(id) ?? [] };
}

function byRank(a: Match, b: Match): number {
  return b.rank - a.rank || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

async function findMatches(
  db: Db,
  scope: Scope,
  { filter, query, bounds }: { filter: MessageFilter; query: SearchQuery; bounds: Bounds },
): Promise<Match[]> {
  const inboxId = filter.inboxId ?? scope.inboxId ?? null;
  const subjectPattern = filter.subject === undefined ? null : `%${escapeLike(filter.subject)}%`;
  const before = earlier(filter.before, query.before) ?? null;
  const from = later(filter.after, query.after) ?? null;
  const { below = null, above = null, ascending, limit } = bounds;
  return db
    .selectFrom(
      sql<Match>`search_messages(
        ${scope.organizationId}, ${scope.environmentId}, ${inboxId},
        ${buildFacets(scope, filter, query)}, ${query.words}, ${filter.status ?? null},
        ${subjectPattern}, ${before}, ${from}, ${below}, ${above}, ${ascending}, ${limit})`.as('match'),
    )
    .select(['match.id', 'match.rank'])
    .execute();
}

/** Includes the tenant's own lexeme, so that the index intersects a frequent word with the tenant's messages. */
function buildFacets(scope: Scope, filter: MessageFilter, query: SearchQuery): string {
  const required = [
    filter.inboxId ?? scope.inboxId ?? scope.environmentId,
    filter.threadId,
    filter.direction && `d:${filter.direction}`,
    filter.from && `f:${filter.from}`,
    filter.to && `t:${filter.to}`,
    filter.label && `l:${filter.label}`,
  ].filter((lexeme) => lexeme !== undefined);
  const facets: Facet[] = [
    ...required.map((lexeme) => ({ lexemes: [lexeme], negated: false })),
    ...query.facets,
  ];
  if (filter.hasAttachments !== undefined)
    facets.push({ lexemes: ['h:attachment'], negated: !filter.hasAttachments });
  const requested = new Set(facets.filter(({ negated }) => !negated).flatMap(({ lexemes }) => lexemes));
  const hidden = HIDDEN_LABELS.map((label) => `l:${label}`);
  // A request for a hidden label includes hidden messages.
  if (!hidden.some((lexeme) => requested.has(lexeme)))
    facets.push(...hidden.map((lexeme) => ({ lexemes: [lexeme], negated: true })));
  return facets.map(facetToTsquery).join(' & ');
}

function facetToTsquery({ lexemes, negated, prefix }: Facet): string {
  const operands = lexemes.map(quoteLexeme).join(' & ');
  return `${negated ? '!' : ''}(${operands}${prefix ? ':*' : ''})`;
}
