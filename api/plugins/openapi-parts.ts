import { orNull } from './openapi-shared-parts.ts';

type Schema = Record<string, unknown>;

interface Part {
  name: string;
  object: Schema;
  /** Replaces the object by a reference. */
  refer(reference: Schema): void;
}

/**
 * Gives each object that may be null a schema of its own, in place: generators would call it `MessageSpamType0`. Equal ones of
 * several schemas share the shortest name.
 */
export function nameNullableObjects(schemas: Record<string, object>): void {
  const groups = new Map<string, Part[]>();
  for (const [name, schema] of Object.entries(schemas))
    for (const part of findParts(schema as Schema, name)) {
      const key = JSON.stringify(part.object);
      groups.set(key, [...(groups.get(key) ?? []), part]);
    }
  for (const parts of groups.values()) {
    const [first] = parts.toSorted((a, b) => a.name.length - b.name.length);
    if (!first) continue;
    if (schemas[first.name]) throw new Error(`The OpenAPI document has two schemas ${first.name}`);
    schemas[first.name] = { title: first.name, ...first.object };
    for (const { refer } of parts) refer({ $ref: `#/components/schemas/${first.name}` });
  }
}

/** The innermost come first, so that those around them are equal if their parts are. */
function findParts(schema: Schema, name: string): Part[] {
  const inner = Object.entries((schema.properties ?? {}) as Record<string, Schema>).flatMap(
    ([property, value]) => findParts(value, `${name}${pascal(property)}`),
  );
  const branches = [schema.items, ...((schema.anyOf as unknown[]) ?? [])]
    .filter((branch) => typeof branch === 'object' && branch !== null)
    .flatMap((branch) => findParts(branch as Schema, name));
  const object = nullableObject(schema);
  const items = nullableItems(schema);
  return [
    ...inner,
    ...branches,
    ...(object ? [{ name, object, refer: (to: Schema) => replace(schema, orNull(to)) }] : []),
    ...(items
      ? [{ name: `${name}Item`, object: { ...items }, refer: (to: Schema) => replace(items, to) }]
      : []),
  ];
}

function nullableObject(schema: Schema): Schema | undefined {
  const { type, anyOf, description: _, ...rest } = schema;
  if (Array.isArray(type) && type.includes('object') && type.includes('null'))
    return { type: 'object', ...rest };
  if (!Array.isArray(anyOf) || !anyOf.some((branch) => branch.type === 'null')) return undefined;
  return anyOf.find((branch) => branch.type === 'object') as Schema | undefined;
}

/** Objects in a list that may be null, which generators name no better. */
function nullableItems({ anyOf }: Schema): Schema | undefined {
  const list = Array.isArray(anyOf) ? anyOf.find((branch) => branch.type === 'array') : undefined;
  return list?.items?.properties ? list.items : undefined;
}

function replace(schema: Schema, by: Schema): void {
  const { description } = schema;
  for (const keyword of Object.keys(schema)) delete schema[keyword];
  Object.assign(schema, description === undefined ? {} : { description }, by);
}

const pascal = (name: string): string =>
  name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
