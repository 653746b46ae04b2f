import { p } from '@mikro-orm/core';

/** Columns that tables share. Ids are text with collation "C", because keyset pages need TypeIDs to sort by time. */
export const idColumn = () => p.text().collation('C');
export const primaryId = () => idColumn().primary();
export const timestamp = () => p.datetime(3);
export const createdAt = () => timestamp().onCreate(() => new Date());
export const updatedAt = () =>
  timestamp()
    .onCreate(() => new Date())
    .onUpdate(() => new Date());

/** A check constraint as PostgreSQL prints it. Any other form would show up as a schema difference. */
export const oneOf = (column: string, words: readonly string[]) =>
  `${column} = ANY (ARRAY[${words.map((word) => `'${word}'::text`).join(', ')}])`;
