import { type EntityMetadata, type EntityName, type EntityProperty, raw, sql } from '@mikro-orm/core';
import type { RowReader } from './find-rows.ts';
import { columnOf } from './row-filter.ts';
import { convertRow, quoteName, shapeOf } from './row-shape.ts';
import { joinSql, type Sql } from './sql.ts';

/**
 * Inserts a row without the ORM's change tracking. Columns without a value have their default.
 *
 * @returns the row as stored, without lazy properties. Changes to it are not saved.
 */
export async function insertRow<Entity extends object>(
  transaction: RowReader,
  entity: EntityName<Entity>,
  values: Partial<Entity>,
): Promise<Entity> {
  const meta = metadataOf(transaction, entity);
  const assigned = toColumns(meta, withTimes(meta, 'onCreate', values));
  const columns = assigned.map(([property]) => nameOf(meta, property));
  return one<Entity>(
    transaction,
    meta,
    sql`insert into ${raw(quoteName(meta.tableName))} (${joinSql(columns, ', ')})
      values (${joinSql(
        assigned.map(([, value]) => value),
        ', ',
      )})`,
  );
}

/**
 * Changes columns of one row without the ORM's change tracking.
 *
 * @returns the row as stored, without lazy properties. Changes to it are not saved.
 * @throws Error if the transaction does not see the row.
 */
export async function updateRow<Entity extends { id: string }>(
  transaction: RowReader,
  entity: EntityName<Entity>,
  id: string,
  changes: Partial<Entity>,
): Promise<Entity> {
  const meta = metadataOf(transaction, entity);
  const assignments = toColumns(meta, withTimes(meta, 'onUpdate', changes)).map(
    ([property, value]) => sql`${nameOf(meta, property)} = ${value}`,
  );
  return one<Entity>(
    transaction,
    meta,
    sql`update ${raw(quoteName(meta.tableName))} set ${joinSql(assignments, ', ')} where id = ${id}`,
  );
}

async function one<Entity>(transaction: RowReader, meta: EntityMetadata, statement: Sql): Promise<Entity> {
  // Rows that this one refers to may be entities that are not inserted yet.
  await transaction.flush?.();
  const shape = shapeOf(meta);
  const [row] = await transaction.execute<Record<string, unknown>[]>(
    sql`${statement} returning ${shape.columns}`,
  );
  if (!row) throw new Error(`No row of ${meta.tableName} was written`);
  convertRow(row, shape);
  return row as Entity;
}

const metadataOf = (transaction: RowReader, entity: EntityName): EntityMetadata =>
  transaction.getMetadata().get(entity) as unknown as EntityMetadata;

const nameOf = (meta: EntityMetadata, property: EntityProperty): Sql =>
  raw(quoteName(columnOf(meta, property.name)));

/** Adds the times that the entity sets by itself, such as `updatedAt`. */
function withTimes(meta: EntityMetadata, hook: 'onCreate' | 'onUpdate', values: object): object {
  const times = meta.props.flatMap((property) => {
    const { [hook]: setTime } = property;
    return setTime && !(property.name in values)
      ? [[property.name, setTime(values as never, undefined as never)]]
      : [];
  });
  return { ...values, ...Object.fromEntries(times) };
}

/** Leaves out undefined values. */
function toColumns(meta: EntityMetadata, values: object): [EntityProperty, Sql][] {
  return Object.entries(values).flatMap(([name, value]): [EntityProperty, Sql][] => {
    const property = meta.properties[name as never] as EntityProperty | undefined;
    if (!property) throw new Error(`${meta.className} has no property ${name}`);
    return value === undefined ? [] : [[property, sql`${toDatabaseValue(property, value)}`]];
  });
}

function toDatabaseValue({ customType }: EntityProperty, value: unknown): unknown {
  if (value === null || !customType?.platform) return value;
  return customType.convertToDatabaseValue(value, customType.platform);
}
