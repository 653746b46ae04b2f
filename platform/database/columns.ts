import { p } from '@mikro-orm/core';

/**
 * Columns that tables share. Ids are text with collation "C", under which TypeIDs sort by time: keyset pages depend on
 * it.
 */
export const idColumn = () => p.text().collation('C');
export const primaryId = () => idColumn().primary();
export const timestamp = () => p.datetime(3);
export const createdAt = () => timestamp().onCreate(() => new Date());
export const updatedAt = () =>
  timestamp()
    .onCreate(() => new Date())
    .onUpdate(() => new Date());

/** A check, written as PostgreSQL prints it, so that the schema comparison finds no difference. */
export const oneOf = (column: string, words: readonly string[]) =>
  `${column} = ANY (ARRAY[${words.map((word) => `'${word}'::text`).join(', ')}])`;
