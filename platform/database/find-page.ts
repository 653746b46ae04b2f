import type { EntityName, FilterQuery } from '@mikro-orm/core';
import { type Page, type PageRequest, toPage } from '../pagination.ts';
import { findRows, type Row, type RowQuery, type RowReader } from './find-rows.ts';
import type { RowFilter } from './row-filter.ts';

export interface PageQuery<Entity> {
  where: FilterQuery<Entity> | FilterQuery<Entity>[];
  page: PageRequest;
}

/** Finds a keyset page in order of id, which is the order of creation. All conditions must hold. */
export async function findPage<Entity extends { id: string }>(
  reader: RowReader,
  entity: EntityName<Entity>,
  { where, page }: PageQuery<Entity>,
): Promise<Page<Row<Entity>>> {
  const { after: [after] = [], order, limit } = page;
  const conditions: RowFilter[] = [where].flat() as RowFilter[];
  if (after !== undefined) conditions.push({ id: order === 'asc' ? { $gt: after } : { $lt: after } });
  const rows = await findRows(reader, entity, {
    where: conditions,
    orderBy: { id: order } as RowQuery<Entity>['orderBy'],
    // One more than the page shows whether another one follows.
    limit: limit + 1,
  });
  return toPage(rows, limit, ({ id }) => [id]);
}
