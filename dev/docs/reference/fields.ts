import { type Resolver, refName, type Schema } from './openapi.ts';

/** A field of a body or an answer, or a parameter, as the reference shows it. */
export interface Field {
  name: string;
  /** In words: `array of Address`. */
  type: string;
  /** The named type that `type` mentions, if it has a section of its own. */
  typeName: string | undefined;
  isRequired: boolean;
  /** In Markdown. */
  description: string;
}

const MAX_DEPTH = 3;
/** Longer limits say nothing to a reader. */
const TELLING_LENGTH = 10_000;

/** Reads schemas into fields. */
export function createFieldReader(resolver: Resolver, hasSection: (name: string) => boolean) {
  const nullable = (schema: Schema): { inner: Schema; isNullable: boolean } => {
    const branches = schema.anyOf ?? schema.oneOf;
    const inner = branches?.filter(({ type }) => type !== 'null');
    if (branches && inner?.length === 1 && inner[0]) {
      const { anyOf: _anyOf, oneOf: _oneOf, ...beside } = schema;
      return { inner: { ...inner[0], ...beside }, isNullable: inner.length < branches.length };
    }
    return { inner: schema, isNullable: Array.isArray(schema.type) && schema.type.includes('null') };
  };

  const nameOf = (schema: Schema): string | undefined => {
    const name = schema.$ref === undefined ? undefined : refName(schema.$ref);
    return name !== undefined && hasSection(name) ? name : undefined;
  };

  function describeType(given: Schema): { type: string; typeName: string | undefined } {
    const { inner, isNullable } = nullable(given);
    const suffix = isNullable ? ' or null' : '';
    const name = nameOf(inner);
    if (name !== undefined) return { type: name + suffix, typeName: name };
    const schema = resolver.schema(inner);
    if (schema.items) {
      const item = describeType(schema.items);
      return { type: `array of ${item.type}${suffix}`, typeName: item.typeName };
    }
    const branches = schema.anyOf ?? schema.oneOf;
    if (branches) {
      const types = [...new Set(branches.map((branch) => describeType(branch).type))];
      return { type: types.join(' or ') + suffix, typeName: branches.map(nameOf).find((each) => each) };
    }
    if (schema.const !== undefined) return { type: JSON.stringify(schema.const), typeName: undefined };
    const [type = 'any value'] = [schema.type ?? []].flat().filter((each) => each !== 'null');
    return { type: (schema.format === 'date-time' ? 'time' : type) + suffix, typeName: undefined };
  }

  function describe(given: Schema, isRequest: boolean): string {
    const { inner } = nullable(given);
    const schema = resolver.schema(inner);
    const of = schema.items ? resolver.schema(schema.items) : schema;
    const facts = [
      schema.description ?? resolver.schema(given).description ?? '',
      listValues(of, isRequest),
      schema.default === undefined ? '' : `Default: ${code(schema.default)}.`,
      isRequest ? describeLimits(schema) : '',
    ];
    return facts.filter((fact) => fact !== '').join(' ');
  }

  /** The fields of an object; those of an inner object without a name follow it, with dots. */
  function readFields(given: Schema, isRequest: boolean, prefix = '', depth = 0): Field[] {
    const schema = resolver.schema(given);
    const required = new Set(schema.required ?? []);
    return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
      const path = `${prefix}${name}`;
      const field: Field = {
        name: path,
        ...describeType(property),
        isRequired: isRequest && required.has(name),
        description: describe(property, isRequest),
      };
      if (depth >= MAX_DEPTH || field.typeName !== undefined) return [field];
      const { inner } = nullable(property);
      const resolved = resolver.schema(inner);
      if (resolved.items) return [field, ...readFields(resolved.items, isRequest, `${path}[].`, depth + 1)];
      return [field, ...readFields(inner, isRequest, `${path}.`, depth + 1)];
    });
  }

  return { describeType, describe, readFields };
}
export type FieldReader = ReturnType<typeof createFieldReader>;

const code = (value: unknown): string =>
  `\`${typeof value === 'object' ? JSON.stringify(value) : String(value)}\``;

function listValues({ enum: values, 'x-known-values': known }: Schema, isRequest: boolean): string {
  const listed = (values ?? known ?? []).filter((value) => value !== null);
  if (listed.length === 0) return '';
  return `One of ${listed.map(code).join(', ')}${known && !isRequest ? '; later versions may add others' : ''}.`;
}

function describeLimits({ minimum, maximum, maxLength, maxItems, format }: Schema): string {
  const facts = [
    minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}.` : '',
    maxLength !== undefined && maxLength <= TELLING_LENGTH && format === undefined
      ? `At most ${maxLength} characters.`
      : '',
    maxItems !== undefined ? `At most ${maxItems}.` : '',
  ];
  return facts.filter((fact) => fact !== '').join(' ');
}
