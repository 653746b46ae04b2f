import { type EntityMetadata, type EntityName, type MetadataStorage, raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { columnOf, type RowFilter, toSqlCondition } from './row-filter.ts';
import { convertRow, quoteName, type RowShape, shapeOf } from './row-shape.ts';
import { joinSql, type Sql } from './sql.ts';

/** Reads and writes rows in a transaction: an entity manager, a `Transaction`, or what `Database.read` passes. */
export interface RowReader extends Partial<Pick<EntityManager, 'flush'>> {
  execute<Rows extends object[]>(query: Sql): Promise<Rows>;
  getMetadata(): MetadataStorage;
}

/** A row with the property names and types of its entity. Changes to it are not saved. */
export type Row<Entity> = Readonly<Entity>;

export interface RowQuery<Entity> {
  where: RowFilter | readonly RowFilter[];
  orderBy?: Partial<Record<keyof Entity & string, 'asc' | 'desc'>>;
  limit?: number;
  /** Lazy properties to read, too. The others are undefined. */
  populate?: readonly (keyof Entity & string)[];
  /** Locks the rows against changes by other transactions until the end of this one. */
  forUpdate?: boolean;
}

/**
 * Reads rows. An entity costs several times as much as its row, because the ORM tracks its changes: use entities to change
 * several related rows, and `write-rows.ts` where one row changes often.
 */
export async function findRows<Entity extends object>(
  reader: RowReader,
  entity: EntityName<Entity>,
  query: RowQuery<Entity>,
): Promise<Row<Entity>[]> {
  // Entities that were changed in the same transaction are read as changed.
  await reader.flush?.();
  const meta = reader.getMetadata().get(entity) as unknown as EntityMetadata;
  const shape = shapeOf(meta, query.populate);
  const rows = await reader.execute<Record<string, unknown>[]>(buildSelect(meta, shape, query));
  for (const row of rows) convertRow(row, shape);
  return rows as Row<Entity>[];
}

/**
 * Reads rows of an entity with a statement of the caller's.
 *
 * @param build gets the columns to select, without a table, under the names of their properties.
 */
export async function queryRows<Entity extends object, More extends object = object>(
  reader: RowReader,
  entity: EntityName<Entity>,
  build: (columns: Sql) => Sql,
): Promise<(Row<Entity> & More)[]> {
  await reader.flush?.();
  const shape = shapeOf(reader.getMetadata().get(entity) as unknown as EntityMetadata);
  const rows = await reader.execute<Record<string, unknown>[]>(build(shape.columns));
  for (const row of rows) convertRow(row, shape);
  return rows as (Row<Entity> & More)[];
}

export async function findRow<Entity extends object>(
  reader: RowReader,
  entity: EntityName<Entity>,
  query: Omit<RowQuery<Entity>, 'limit'>,
): Promise<Row<Entity> | undefined> {
  const [row] = await findRows(reader, entity, { ...query, limit: 1 });
  return row;
}

function buildSelect<Entity>(
  meta: EntityMetadata,
  { head }: RowShape,
  { where, orderBy = {}, limit, forUpdate = false }: RowQuery<Entity>,
): Sql {
  const order = Object.entries(orderBy).map(([name, direction]) =>
    raw(`${quoteName(columnOf(meta, name))} ${direction === 'asc' ? 'asc' : 'desc'}`),
  );
  const parts = [sql`${head} where ${toSqlCondition(meta, where)}`];
  if (order.length > 0) parts.push(sql`order by ${joinSql(order, ', ')}`);
  if (limit !== undefined) parts.push(sql`limit ${limit}`);
  if (forUpdate) parts.push(sql`for update`);
  return joinSql(parts, ' ');
}
