import { p } from '@mikro-orm/core';

/**
 * Shapes of columns that every table shares. Ids are text under collation "C": TypeIDs sort by time only there,
 * and keyset pages depend on it.
 */
export const idColumn = () => p.text().collation('C');
export const primaryId = () => idColumn().primary();
export const timestamp = () => p.datetime(3);
export const createdAt = () => timestamp().onCreate(() => new Date());
export const updatedAt = () =>
  timestamp()
    .onCreate(() => new Date())
    .onUpdate(() => new Date());

/** A check, in PostgreSQL's own words, so that the schema that is there and the one described compare as equal. */
export const oneOf = (column: string, words: readonly string[]) =>
  `${column} = ANY (ARRAY[${words.map((word) => `'${word}'::text`).join(', ')}])`;
