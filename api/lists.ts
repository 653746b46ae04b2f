import type { FastifyRequest } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import type { Cursors } from '../platform/cursor.ts';
import type { Page, PageRequest } from '../platform/pagination.ts';
import { enumOf, strictObject, text } from './schemas.ts';

/** Query parameters of every list; spread them into the list's own parameters. */
export const pageQuery = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 25, description: 'Items per page.' }),
  cursor: Type.Optional(text(1024, { minLength: 1, description: 'next_cursor of the previous page.' })),
  order: enumOf(['asc', 'desc'], { default: 'desc', description: 'desc: newest first.' }),
};
export const PageQuery = strictObject(pageQuery);
type PageQuery = Static<typeof PageQuery>;

/** The envelope of every list. */
export function listOf<Item extends TSchema>(item: Item) {
  return strictObject(
    {
      data: Type.Array(item, { maxItems: 100 }),
      has_more: Type.Boolean(),
      next_cursor: Type.Unsafe<string | null>({
        type: ['string', 'null'],
        maxLength: 1024,
        description: 'Null on the last page.',
      }),
    },
    { description: 'One page, newest first by default.' },
  );
}

export interface ListResponse<Item> {
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

/** The part of a request that its cursors depend on. */
export type ListRequest = Pick<
  FastifyRequest,
  'scope' | 'person' | 'staff' | 'routeOptions' | 'params' | 'query'
>;

export interface Lists {
  /** @throws AppError `invalid_cursor`. */
  read(request: ListRequest): PageRequest;
  present<Row, Item>(request: ListRequest, page: Page<Row>, item: (row: Row) => Item): ListResponse<Item>;
}

export function createLists(cursors: Cursors): Lists {
  return {
    read(request) {
      const { limit, order, cursor } = request.query as PageQuery;
      const after = cursor === undefined ? undefined : cursors.decode(listKey(request), cursor);
      return { limit, order, ...(after ? { after } : {}) };
    },
    present: (request, { items, next }, item) => ({
      data: items.map(item),
      has_more: next !== null,
      next_cursor: next === null ? null : cursors.encode(listKey(request), next),
    }),
  };
}

/** A cursor is valid for one list: its tenant, path, filters and order. The page size may change between pages. */
function listKey({ scope, person, staff, routeOptions, params, query }: ListRequest): string {
  const { limit: _limit, cursor: _cursor, ...filters } = query as PageQuery;
  return JSON.stringify([
    // Lists of a person or of staff belong to no organization.
    scope?.organizationId ?? person?.userId ?? staff.staffId,
    scope?.environmentId,
    routeOptions.url,
    params,
    Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1)),
  ]);
}
