import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { invalid } from '../../platform/errors.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
import type { MessageFilter } from './message-filter.ts';
import { earlier, type Facet, later, parseSearch, quoteLexeme, type SearchQuery } from './search-query.ts';

/** Filters a plain walk through an inbox would need to read every message for. */
export function needsSearch({ q, label, from, to }: MessageFilter): boolean {
  return q !== undefined || label !== undefined || from !== undefined || to !== undefined;
}

/** Matches are ranked among so many of the newest, then among as many before them, and so on. */
const WINDOW_SIZE = 1000;

interface Match {
  id: string;
  rank: number;
}

/**
 * Finds messages by their words, labels and addresses. With `q` the best come first, within windows of the
 * {@link WINDOW_SIZE} newest matches; without it they come by time. Costs one statement, two where a page crosses windows.
 *
 * @returns ids in the order to show.
 * @throws AppError `validation_error` for a `q` that cannot be read, or one with `order=asc`.
 */
export async function searchMessages(
  em: EntityManager,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<Page<string>> {
  const query: SearchQuery = filter.q === undefined ? { words: '', facets: [] } : parseSearch(filter.q);
  const find = (bounds: Bounds) => findMatches(em, scope, { filter, query, bounds });
  if (query.words === '') return pageByTime(find, page);
  if (page.order === 'asc')
    throw invalid(
      '/query/order',
      'cannot be asc where q has words: the best matches come first',
      'Leave order out, or use before: and after: to look at a time.',
    );
  return pageByRank(find, page);
}

interface Bounds {
  below?: string | undefined;
  above?: string | undefined;
  ascending: boolean;
  limit: number;
}
type Find = (bounds: Bounds) => Promise<Match[]>;

async function pageByTime(find: Find, { order, limit, after }: PageRequest): Promise<Page<string>> {
  const ascending = order === 'asc';
  const [last] = after ?? [];
  const matches = await find({
    ascending,
    ...(ascending ? { above: last } : { below: last }),
    limit: limit + 1,
  });
  const { items, next } = pageOf(matches, limit, ({ id }) => [id]);
  return { items: items.map(({ id }) => id), next };
}

/** A page's key is the window it is in, by the id above its newest, and the place of its last match there. */
async function pageByRank(find: Find, { limit, after }: PageRequest): Promise<Page<string>> {
  const [start, rank, id] = after ?? [];
  let below = start;
  let last = rank === undefined || id === undefined ? undefined : { rank: Number(rank), id };
  const found: (Match & { window: string })[] = [];
  for (;;) {
    const window = await find({ below, ascending: false, limit: WINDOW_SIZE });
    // Mail that comes while somebody pages must not push this window's last ones into the next: its start is kept.
    const name = below ?? `${window[0]?.id ?? ''}~`;
    const rest = window.toSorted(byRank).filter((match) => !last || byRank(last, match) < 0);
    found.push(...rest.map((match) => ({ ...match, window: name })));
    if (found.length > limit || window.length < WINDOW_SIZE) break;
    below = window.at(-1)?.id;
    last = undefined;
  }
  const { items, next } = pageOf(found, limit, (match) => [match.window, String(match.rank), match.id]);
  return { items: items.map((match) => match.id), next };
}

function byRank(a: Match, b: Match): number {
  return b.rank - a.rank || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

async function findMatches(
  em: EntityManager,
  scope: Scope,
  { filter, query, bounds }: { filter: MessageFilter; query: SearchQuery; bounds: Bounds },
): Promise<Match[]> {
  return em.execute<Match[]>(
    sql`select id, rank from search_messages(${scope.organizationId}, ${scope.environmentId}, ${filter.inboxId ?? scope.inboxId ?? null}, ${buildFacets(scope, filter, query)}, ${query.words}, ${filter.status ?? null}, ${filter.subject === undefined ? null : `%${escapeLike(filter.subject)}%`}, ${earlier(filter.before, query.before) ?? null}, ${later(filter.after, query.after) ?? null}, ${bounds.below ?? null}, ${bounds.above ?? null}, ${bounds.ascending}, ${bounds.limit})`,
  );
}

/** The tenant's own lexeme is among them, so that the index meets a frequent word of others only where both stand. */
function buildFacets(scope: Scope, filter: MessageFilter, query: SearchQuery): string {
  const must = [
    filter.inboxId ?? scope.inboxId ?? scope.environmentId,
    filter.threadId,
    filter.direction && `d:${filter.direction}`,
    filter.from && `f:${filter.from.toLowerCase()}`,
    filter.to && `t:${filter.to.toLowerCase()}`,
    filter.label && `l:${filter.label}`,
  ].filter((lexeme) => lexeme !== undefined);
  const facets: Facet[] = [...must.map((lexeme) => ({ lexeme, negated: false })), ...query.facets];
  if (filter.hasAttachments !== undefined)
    facets.push({ lexeme: 'h:attachment', negated: !filter.hasAttachments });
  const wanted = new Set(facets.filter(({ negated }) => !negated).map(({ lexeme }) => lexeme));
  const hidden = HIDDEN_LABELS.map((label) => `l:${label}`);
  // Who asks for one of them asks for what is hidden.
  if (!hidden.some((lexeme) => wanted.has(lexeme)))
    facets.push(...hidden.map((lexeme) => ({ lexeme, negated: true })));
  return facets.map(({ lexeme, negated }) => `${negated ? '!' : ''}${quoteLexeme(lexeme)}`).join(' & ');
}

export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}
