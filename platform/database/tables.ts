import type { EntitySchemaWithMeta } from '@mikro-orm/core';
import type { InferKyselyTable, SnakeCase } from '@mikro-orm/postgresql';
import type { ColumnType, Generated, Kysely } from 'kysely';
import type { JsonParameter } from './json.ts';

/** Every table and its columns, by name. `domain/tables.ts` adds those of all entities. */
// biome-ignore lint/suspicious/noEmptyInterface: domain/tables.ts merges its declaration into this one.
export interface Tables {}

/**
 * Runs typed statements: those of one transaction, or each in a transaction of its own. Only `Database` makes one, and
 * only `Database` opens transactions.
 */
export interface Db
  extends Pick<
    Kysely<Tables>,
    | 'selectFrom'
    | 'selectNoFrom'
    | 'insertInto'
    | 'updateTable'
    | 'deleteFrom'
    | 'mergeInto'
    | 'with'
    | 'withRecursive'
    | 'fn'
    | 'dynamic'
    | 'getExecutor'
    | 'executeQuery'
  > {}

/** The columns of an entity's table, as statements read and write them. */
export type TableOf<Entity extends EntitySchemaWithMeta> = {
  [Column in keyof InferKyselyTable<Entity>]: Column extends JsonColumnOf<Entity>
    ? WrittenAsJson<InferKyselyTable<Entity>[Column]>
    : InferKyselyTable<Entity>[Column];
};

/** A plain list would be stored as an array of PostgreSQL, so only the result of `json()` can be written. */
type WrittenAsJson<Column> = [Column] extends [Generated<infer Value>]
  ? ColumnType<Value, JsonParameter<Value> | undefined, JsonParameter<Value>>
  : null extends Column
    ? ColumnType<Column, JsonParameter<Column> | null, JsonParameter<Column> | null>
    : ColumnType<Column, JsonParameter<Column>, JsonParameter<Column>>;

type JsonColumnOf<Entity extends EntitySchemaWithMeta> = {
  [Name in keyof Entity['properties']]: Marked<Entity['properties'][Name]> extends { json: true }
    ? Marked<Entity['properties'][Name]> extends { fieldName: infer Column }
      ? Column
      : SnakeCase<Name & string>
    : never;
}[keyof Entity['properties']];

/** The options that a property's definition carries in its type, such as its column. */
export type Marked<Property> = Property extends () => infer Built ? OptionsOf<Built> : OptionsOf<Property>;

type OptionsOf<Built> = Built extends { '~options': infer Options } ? Options : never;
