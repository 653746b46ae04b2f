import { BigIntType, type EntityMetadata, raw } from '@mikro-orm/core';
import { columnOf } from './row-filter.ts';
import type { Sql } from './sql.ts';

/** What all statements that return an entity's columns have in common. */
export interface RowShape {
  columns: Sql;
  /** `select … from …` */
  head: Sql;
  times: string[];
  numbers: string[];
}

const shapes = new WeakMap<EntityMetadata, Map<string, RowShape>>();

export function shapeOf(meta: EntityMetadata, populate: readonly string[] = []): RowShape {
  const byPopulate = shapes.get(meta) ?? new Map<string, RowShape>();
  shapes.set(meta, byPopulate);
  const key = populate.join();
  const known = byPopulate.get(key);
  if (known) return known;
  const properties = meta.props.filter(
    ({ name, lazy, persist }) => persist !== false && (!lazy || populate.includes(name)),
  );
  const columns = properties.map(({ name }) => `${quoteName(columnOf(meta, name))} as ${quoteName(name)}`);
  const shape: RowShape = {
    columns: raw(columns.join(', ')),
    head: raw(`select ${columns.join(', ')} from ${quoteName(meta.tableName)}`),
    times: properties.filter(({ runtimeType }) => runtimeType === 'Date').map(({ name }) => name),
    numbers: properties
      .filter(({ customType, runtimeType }) => customType instanceof BigIntType && runtimeType === 'number')
      .map(({ name }) => name),
  };
  byPopulate.set(key, shape);
  return shape;
}

export function quoteName(name: string): string {
  return `"${name}"`;
}

/** The driver returns times and large numbers as text. */
export function convertRow(row: Record<string, unknown>, { times, numbers }: RowShape): void {
  for (const name of times) if (row[name] !== null) row[name] = new Date(row[name] as string);
  for (const name of numbers) if (row[name] !== null) row[name] = Number(row[name]);
}
