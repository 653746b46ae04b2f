import { p } from '@mikro-orm/core';

/** Columns that tables share. Ids are text with collation "C", because keyset pages need TypeIDs to sort by time. */
export const idColumn = () => p.text().collation('C');
export const primaryId = () => idColumn().primary();
export const timestamp = () => p.datetime(3);
export const createdAt = () =>
  timestamp()
    .defaultRaw('now()')
    .onCreate(() => new Date());
/** When the content last changed. The statement that changes it sets the time. */
export const updatedAt = () => createdAt().onUpdate(() => new Date());

interface PropertyBuilder {
  '~options': object;
}

/** A JSON column: statements write it with `json()` alone. */
export const json = <Builder extends PropertyBuilder>(builder: Builder) =>
  builder as Builder & { '~options': { json: true } };

/** A column that PostgreSQL computes: statements do not write it. */
export const computed = <Builder extends PropertyBuilder>(builder: Builder) =>
  builder as Builder & { '~options': { defaultRaw: string } };

/** A large column, which statements read only if they name it (`columnsOf`). */
export const lazy = <Builder extends PropertyBuilder & { lazy(): unknown }>(builder: Builder) =>
  builder.lazy() as Builder & { '~options': { lazy: true } };

/** A check constraint as PostgreSQL prints it. Any other form would show up as a schema difference. */
export const oneOf = (column: string, words: readonly string[]) =>
  `${column} = ANY (ARRAY[${words.map((word) => `'${word}'::text`).join(', ')}])`;
