/** The parts of a JSON Schema that an example is made from. */
export interface ExampleSchema {
  $ref?: string;
  type?: string | readonly string[];
  format?: string;
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
  minimum?: number;
  items?: ExampleSchema;
  properties?: Record<string, ExampleSchema>;
  required?: readonly string[];
  anyOf?: readonly ExampleSchema[];
  additionalProperties?: boolean | ExampleSchema;
}

/** Resolves `Address#`. */
export type ResolveSchema = (reference: string) => ExampleSchema | undefined;

/** The example of a string that the schema does not describe further. */
export const MADE_UP_TEXT = 'text';

/** A value that fits the schema, for error messages: the first of `examples`, or one made from the types. */
export function buildExample(schema: ExampleSchema, resolve: ResolveSchema): unknown {
  if (schema.$ref !== undefined) return buildExample(resolve(schema.$ref) ?? {}, resolve);
  const [given = schema.const ?? schema.default ?? schema.enum?.[0]] = schema.examples ?? [];
  if (given !== undefined && given !== null) return given;
  const branch = schema.anyOf?.find(({ type }) => type !== 'null');
  if (branch) return buildExample(branch, resolve);
  const type = listTypes(schema).find((name) => name !== 'null');
  if (type === 'array') return [buildExample(schema.items ?? {}, resolve)];
  if (type === 'object') return buildObject(schema, resolve);
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  return schema.format === 'date-time' ? '2026-11-21T09:30:00.000Z' : MADE_UP_TEXT;
}

function buildObject(
  { properties = {}, required = [], additionalProperties }: ExampleSchema,
  resolve: ResolveSchema,
) {
  const names = required.length > 0 ? required : Object.keys(properties).slice(0, 1);
  const members = names.map((name) => [name, buildExample(properties[name] ?? {}, resolve)] as const);
  if (members.length > 0) return Object.fromEntries(members);
  return typeof additionalProperties === 'object'
    ? { 'X-Name': buildExample(additionalProperties, resolve) }
    : {};
}

export function listTypes({ type }: ExampleSchema): readonly string[] {
  return typeof type === 'string' ? [type] : (type ?? []);
}
