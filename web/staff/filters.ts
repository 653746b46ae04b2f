import type { FastifyRequest } from 'fastify';
import type { ListResponse } from '../../api/lists.ts';

type Filled<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The filters of a form that were filled in: an empty field filters nothing. */
export function filled<T extends object>(filters: T): Filled<T> {
  return Object.fromEntries(
    Object.entries(filters).filter(([, value]) => value !== undefined && value !== ''),
  ) as Filled<T>;
}

/** The address of the next page with the same filters; undefined on the last page. */
export function nextPage(
  { url, query }: FastifyRequest,
  { next_cursor: cursor }: Pick<ListResponse<unknown>, 'next_cursor'>,
): string | undefined {
  if (cursor === null) return undefined;
  const [path = ''] = url.split('?');
  // Empty filters stay: a cursor belongs to a list with the same parameters.
  const { notice: _notice, ...filters } = query as Record<string, unknown>;
  const parameters = Object.entries({ ...filters, cursor });
  return `${path}?${new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))}`;
}
