import {
  BigIntType,
  type EntityMetadata,
  type EntityName,
  type MetadataStorage,
  raw,
  sql,
} from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { columnOf, type RowFilter, toSqlCondition } from './row-filter.ts';
import { joinSql, type Sql } from './sql.ts';

/** Reads rows in a transaction: an entity manager, or what `Database.read` passes. */
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
}

/**
 * Reads rows for a response. An entity costs several times as much as its row, because the ORM tracks its changes: use
 * entities to change something.
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
  for (const row of rows) convert(row, shape);
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
  for (const row of rows) convert(row, shape);
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

/** What is the same for all reads of an entity's columns. */
interface Shape {
  columns: Sql;
  /** `select … from …` */
  head: Sql;
  times: string[];
  numbers: string[];
}

const shapes = new WeakMap<EntityMetadata, Map<string, Shape>>();

function shapeOf(meta: EntityMetadata, populate: readonly string[] = []): Shape {
  const byPopulate = shapes.get(meta) ?? new Map<string, Shape>();
  shapes.set(meta, byPopulate);
  const key = populate.join();
  const known = byPopulate.get(key);
  if (known) return known;
  const properties = meta.props.filter(
    ({ name, lazy, persist }) => persist !== false && (!lazy || populate.includes(name)),
  );
  const columns = properties.map(({ name }) => `${quote(columnOf(meta, name))} as ${quote(name)}`);
  const shape: Shape = {
    columns: raw(columns.join(', ')),
    head: raw(`select ${columns.join(', ')} from ${quote(meta.tableName)}`),
    times: properties.filter(({ runtimeType }) => runtimeType === 'Date').map(({ name }) => name),
    numbers: properties
      .filter(({ customType, runtimeType }) => customType instanceof BigIntType && runtimeType === 'number')
      .map(({ name }) => name),
  };
  byPopulate.set(key, shape);
  return shape;
}

function quote(name: string): string {
  return `"${name}"`;
}

function buildSelect<Entity>(
  meta: EntityMetadata,
  { head }: Shape,
  { where, orderBy = {}, limit }: RowQuery<Entity>,
): Sql {
  const order = Object.entries(orderBy).map(([name, direction]) =>
    raw(`${quote(columnOf(meta, name))} ${direction === 'asc' ? 'asc' : 'desc'}`),
  );
  const parts = [sql`${head} where ${toSqlCondition(meta, where)}`];
  if (order.length > 0) parts.push(sql`order by ${joinSql(order, ', ')}`);
  if (limit !== undefined) parts.push(sql`limit ${limit}`);
  return joinSql(parts, ' ');
}

/** The driver returns times and large numbers as text. */
function convert(row: Record<string, unknown>, { times, numbers }: Shape): void {
  for (const name of times) if (row[name] !== null) row[name] = new Date(row[name] as string);
  for (const name of numbers) if (row[name] !== null) row[name] = Number(row[name]);
}
