import { type Expression, type RawBuilder, sql } from 'kysely';

/** The right side of `=` for any of these values; of an empty list it matches nothing, while `in ()` is a syntax error. */
export const anyOf = <Value>(values: readonly Value[]): RawBuilder<Value> => sql`any(${values})`;

/**
 * The right side of `=` for any row that the query finds and locks. PostgreSQL may run the subquery of `in` more than once,
 * and then locks more rows than its limit.
 *
 * @param query selects one column, for update, and skips locked rows.
 */
export const anyLocked = <Value>(query: Expression<Record<string, Value>>): RawBuilder<Value> =>
  sql`any(array(${query}))`;
