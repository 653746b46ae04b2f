import { type RawBuilder, sql } from 'kysely';
import { Placeholder } from './placeholder.ts';

declare const valueOfJson: unique symbol;

/** What a JSON column is written with: the result of {@link json}. */
export interface JsonParameter<Value> {
  readonly [valueOfJson]?: Value;
  readonly isJson: true;
}

/** Writes a value to a JSON column; `null` is the NULL of SQL. */
export function json<Value>(value: Value): RawBuilder<JsonParameter<Value>> {
  if (value instanceof Placeholder) return sql`${value.asJson()}::jsonb`;
  return value === null ? sql`null` : sql`${JSON.stringify(value)}::jsonb`;
}
