import type { EntitySchemaWithMeta, InferEntity } from '@mikro-orm/core';
import { type AliasedExpression, RawNode } from 'kysely';
import type { Marked } from './tables.ts';

type Properties<Entity extends EntitySchemaWithMeta> = keyof Entity['properties'] &
  keyof InferEntity<Entity> &
  string;

/** Properties that statements read only if they name them: large ones. `lazy()` of `columns.ts` marks them. */
type LazyOf<Entity extends EntitySchemaWithMeta> = {
  [Name in Properties<Entity>]: Marked<Entity['properties'][Name]> extends { lazy: true } ? Name : never;
}[Properties<Entity>];

/** Columns to select, under the names and types of an entity's properties. */
export type ColumnsOf<Entity extends EntitySchemaWithMeta, Name extends Properties<Entity>> = readonly {
  [Each in Name]: AliasedExpression<InferEntity<Entity>[Each], Each>;
}[Name][];

/** A row as {@link columnsOf} selects it. */
export type RowOf<Entity extends EntitySchemaWithMeta, Lazy extends LazyOf<Entity> = never> = Readonly<
  Pick<InferEntity<Entity>, Exclude<Properties<Entity>, LazyOf<Entity>> | Lazy>
>;

const known = new WeakMap<EntitySchemaWithMeta, Map<string, ColumnsOf<EntitySchemaWithMeta, string>>>();

/**
 * The columns of an entity's table for `select` and `returning`, under the names of its properties: all but the lazy ones.
 *
 * @param options.lazy lazy columns to read, too.
 * @param options.from the alias of the table in the statement; by default its name.
 */
export function columnsOf<Entity extends EntitySchemaWithMeta, Lazy extends LazyOf<Entity> = never>(
  entity: Entity,
  { lazy = [], from = entity.meta.tableName }: { lazy?: readonly Lazy[]; from?: string } = {},
): ColumnsOf<Entity, Exclude<Properties<Entity>, LazyOf<Entity>> | Lazy> {
  const byOptions = known.get(entity) ?? new Map();
  known.set(entity, byOptions);
  const key = [from, ...lazy].join();
  const columns = byOptions.get(key) ?? [selectTogether(entity, from, lazy)];
  byOptions.set(key, columns);
  return columns;
}

/** One node for all columns: building and compiling one for each costs more than the rest of the statement. */
function selectTogether(
  entity: EntitySchemaWithMeta,
  from: string,
  lazy: readonly string[],
): AliasedExpression<unknown, string> {
  const columns = Object.entries(entity.meta.properties)
    .filter(([name, property]) => !property.lazy || lazy.includes(name))
    .map(([name]) => `${quoteName(from)}.${quoteName(columnOf(entity, name))} as ${quoteName(name)}`);
  const node = RawNode.createWithSql(columns.join(', '));
  return { expression: node, alias: '*', toOperationNode: () => node } as unknown as AliasedExpression<
    unknown,
    string
  >;
}

const quoteName = (name: string): string => `"${name}"`;

/** The column of a property: named in its definition, or after the property. A test compares it with the ORM's metadata. */
export function columnOf(entity: EntitySchemaWithMeta, property: string): string {
  const { fieldName } = entity.meta.properties[property] as { fieldName?: string };
  return fieldName ?? property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
