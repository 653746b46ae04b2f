import type { EntityName, FilterQuery, QueryOrderMap } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type Page, type PageRequest, toPage } from '../pagination.ts';

export interface PageQuery<Entity> {
  where: FilterQuery<Entity> | FilterQuery<Entity>[];
  page: PageRequest;
}

/** Finds a keyset page in order of id, which is the order of creation. All conditions must hold. */
export async function findPage<Entity extends { id: string }>(
  em: EntityManager,
  entity: EntityName<Entity>,
  { where, page }: PageQuery<Entity>,
): Promise<Page<Entity>> {
  const { after: [after] = [], order, limit } = page;
  const conditions: unknown[] = Array.isArray(where) ? [...where] : [where];
  if (after !== undefined) conditions.push({ id: order === 'asc' ? { $gt: after } : { $lt: after } });
  const rows: Entity[] = await em.find(entity, { $and: conditions } as FilterQuery<Entity>, {
    orderBy: { id: order } as QueryOrderMap<Entity>,
    // One more than the page shows whether another one follows.
    limit: limit + 1,
  });
  return toPage(rows, limit, ({ id }) => [id]);
}
