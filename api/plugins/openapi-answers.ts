import { NAME_BY_VALUES, openName, orNull } from './openapi-shared-parts.ts';

type Schema = Record<string, unknown>;

interface Described {
  paths?: Record<string, Record<string, { responses: object }> | undefined>;
  webhooks?: object;
  components?: { schemas?: Record<string, object>; responses?: Record<string, object> };
}

/**
 * Opens the schemas of what the API answers and of events, in place: a client that was generated today must accept the fields
 * and values of later versions. Routes still serialize by their closed schemas, so nothing else than the document changes.
 */
export function openAnswers(document: Described): void {
  const { schemas = {}, responses = {} } = document.components ?? {};
  const opened = new Set<string>();

  function open(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const schema = value as Schema;
    if (typeof schema.$ref === 'string') openReferred(schema.$ref);
    if (schema.additionalProperties === false) delete schema.additionalProperties;
    openEnumeration(schema);
    for (const [name, member] of Object.entries(schema)) if (!isDiscriminator(name, schema)) open(member);
  }

  function openReferred(reference: string): void {
    const name = reference.split('/').at(-1) ?? '';
    if (opened.has(name)) return;
    opened.add(name);
    open(schemas[name]);
  }

  for (const item of Object.values(document.paths ?? {}))
    for (const operation of Object.values(item ?? {})) open(operation.responses);
  open(responses);
  open(document.webhooks);
}

/** The property by which clients tell the branches of a union apart keeps its only value. */
const isDiscriminator = (name: string, properties: object): boolean =>
  name === 'object' || (name === 'type' && 'env_id' in properties && 'data' in properties);

/** An enumeration becomes a string with known values; with a name, if it has one. */
function openEnumeration(schema: Schema): void {
  const { type, enum: given } = schema;
  if (!Array.isArray(given) || ![type].flat().includes('string')) return;
  const values = given.filter((value) => value !== null) as string[];
  const name = NAME_BY_VALUES.get(values.join());
  const opened: Schema = name
    ? { $ref: `#/components/schemas/${openName(name)}` }
    : { type: 'string', 'x-known-values': values };
  delete schema.type;
  delete schema.enum;
  Object.assign(schema, values.length === given.length ? opened : orNull(opened));
}
