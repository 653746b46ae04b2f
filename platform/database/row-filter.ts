import { type EntityMetadata, raw, sql } from '@mikro-orm/core';
import { joinSql, type Sql } from './sql.ts';

/** Conditions on the properties of an entity, in the ORM's notation; a list of conditions must all hold. */
export type RowFilter = object | Sql;

/**
 * Translates a filter of the ORM to SQL. It knows what the conditions of reads need: values, null, lists, comparisons,
 * `$and`, `$or` and `$not` on columns of the table itself. The ORM's own translation costs as much processor time as the
 * rest of a request.
 *
 * @throws Error for anything else.
 */
export function toSqlCondition(meta: EntityMetadata, filter: RowFilter | readonly RowFilter[]): Sql {
  if (Array.isArray(filter)) return joinAll(filter.map((each) => toSqlCondition(meta, each)));
  if ('sql' in filter) return filter as Sql;
  return joinAll(Object.entries(filter).map(([name, value]) => toCondition(meta, name, value)));
}

export function columnOf(meta: EntityMetadata, property: string): string {
  const column = meta.properties[property as never]?.fieldNames?.[0];
  if (column === undefined) throw new Error(`${meta.className} has no column for ${property}`);
  return column;
}

function joinAll(conditions: Sql[]): Sql {
  return conditions.length === 0 ? sql`true` : joinSql(conditions, ' and ');
}

function toCondition(meta: EntityMetadata, name: string, value: unknown): Sql {
  if (name === '$and') return toSqlCondition(meta, value as object[]);
  if (name === '$not') return sql`not (${toSqlCondition(meta, value as object)})`;
  if (name === '$or') {
    const choices = (value as object[]).map((choice) => sql`(${toSqlCondition(meta, choice)})`);
    return sql`(${joinSql(choices, ' or ')})`;
  }
  const column = sql.ref(columnOf(meta, name));
  if (!isOperators(value)) return compare(column, '$eq', value);
  return joinAll(Object.entries(value).map(([operator, operand]) => compare(column, operator, operand)));
}

function isOperators(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !Array.isArray(value);
}

const COMPARISONS: Record<string, string> = {
  $eq: '=',
  $gt: '>',
  $gte: '>=',
  $lt: '<',
  $lte: '<=',
  $ilike: 'ilike',
};

function compare(column: Sql, operator: string, operand: unknown): Sql {
  if (operand === undefined) throw new Error('A condition has no value');
  if (operand === null && operator === '$eq') return sql`${column} is null`;
  if (operand === null && operator === '$ne') return sql`${column} is not null`;
  if (Array.isArray(operand)) {
    if (operator === '$overlap') return sql`${column} && array[${operand}]::text[]`;
    if (operator === '$contained') return sql`${column} <@ array[${operand}]::text[]`;
    if (operator === '$in' || operator === '$eq')
      return operand.length === 0 ? sql`false` : sql`${column} in (${operand})`;
  }
  const comparison = COMPARISONS[operator];
  if (comparison === undefined) throw new Error(`A read cannot filter by ${operator}`);
  return sql`${column} ${raw(comparison)} ${operand}`;
}
