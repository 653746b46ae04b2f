/** A type of the API, as every language can print it. */
export type Type =
  | { kind: 'string'; format: 'date-time' | 'date' | 'binary' | null }
  | { kind: 'integer' | 'number' | 'boolean' | 'null' | 'unknown' }
  | { kind: 'literal'; value: string | boolean }
  /** `open`: the service may answer other values, too. */
  | { kind: 'enumeration'; values: string[]; open: boolean }
  | { kind: 'list'; items: Type }
  | { kind: 'map'; values: Type }
  /** `discriminator`: the field whose value tells the branches apart. */
  | { kind: 'union'; branches: Type[]; discriminator: string | null }
  | { kind: 'reference'; name: string };

export interface Field {
  /** As in JSON. */
  name: string;
  type: Type;
  required: boolean;
  description: string | null;
  /** Bounds and the default, as a sentence. */
  limits: string | null;
}

/** An object, or another type that has a name in the document. Objects within objects have names, too. */
export type NamedType = { name: string; description: string | null } & (
  | { kind: 'object'; fields: Field[] /** May have further fields. */; open: boolean }
  | { kind: 'alias'; type: Type }
);

/** A JSON Schema of the OpenAPI document, as far as it uses JSON Schema. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  format?: string;
  const?: string | boolean;
  enum?: (string | null)[];
  'x-known-values'?: string[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  discriminator?: { propertyName: string };
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

/** Everything that the model understands or may ignore. Another keyword could change what a type means. */
const KEYWORDS = new Set(
  `$ref type title description format const enum x-known-values items properties required additionalProperties anyOf oneOf
  discriminator default minimum maximum minLength maxLength minItems maxItems maxProperties minProperties pattern
  propertyNames uniqueItems examples`.split(/\s+/),
);
const PREFIX = '#/components/schemas/';

export const pascal = (name: string): string =>
  name.replace(/(?:^|[_.-])([a-z])/g, (_, letter: string) => letter.toUpperCase());

export const refName = (reference: string): string => {
  if (!reference.startsWith(PREFIX)) throw new Error(`${reference} is not a schema of the document`);
  return reference.slice(PREFIX.length);
};

/** Reads schemas into types, and keeps every named type that one of them needs. */
export class TypeReader {
  readonly #schemas: Record<string, Schema>;
  readonly #named = new Map<string, NamedType>();

  constructor(schemas: Record<string, Schema>) {
    this.#schemas = schemas;
  }

  /** By name. */
  get types(): NamedType[] {
    return [...this.#named.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** `name` is what an object in this place is called. */
  read(schema: Schema, name: string): Type {
    for (const keyword of Object.keys(schema))
      if (!KEYWORDS.has(keyword)) throw new Error(`${name}: the model does not know the keyword ${keyword}`);
    if (schema.$ref !== undefined) return this.reference(refName(schema.$ref));
    if (schema.const !== undefined) return { kind: 'literal', value: schema.const };
    const values = schema['x-known-values'] ?? schema.enum;
    if (values !== undefined) return this.#enumeration(values, schema['x-known-values'] !== undefined);
    const branches = schema.oneOf ?? schema.anyOf;
    if (branches !== undefined) return this.#union(schema, branches, name);
    const types = [schema.type ?? 'unknown'].flat();
    const read = types.map((type) => this.#readType(type, schema, name));
    return read.length === 1 && read[0] ? read[0] : { kind: 'union', branches: read, discriminator: null };
  }

  /** The type of this name in the document. */
  reference(name: string): Type {
    const schema = this.#schemas[name];
    if (!schema) throw new Error(`The document has no schema ${name}`);
    if (!this.#named.has(name)) {
      const description = schema.description ?? null;
      // First without its content, for types that contain themselves.
      this.#named.set(name, { name, description, kind: 'alias', type: { kind: 'unknown' } });
      if (isObject(schema)) this.#named.set(name, this.#object(schema, name));
      else
        this.#named.set(name, { name, description, kind: 'alias', type: this.read(schema, `${name}Value`) });
    }
    return { kind: 'reference', name };
  }

  fields(schema: Schema, owner: string): Field[] {
    return Object.entries(schema.properties ?? {}).map(([name, member]) => ({
      name,
      type: this.read(member, owner + pascal(name)),
      required: schema.required?.includes(name) ?? false,
      ...aboutOf(member),
    }));
  }

  #readType(type: string, schema: Schema, name: string): Type {
    switch (type) {
      case 'string':
        return { kind: 'string', format: formatOf(schema.format, name) };
      case 'integer':
      case 'number':
      case 'boolean':
      case 'null':
      case 'unknown':
        return { kind: type };
      case 'array':
        return { kind: 'list', items: this.read(schema.items ?? {}, singular(name)) };
      case 'object':
        return this.#inline(schema, name);
      default:
        throw new Error(`${name}: the model does not know the type ${type}`);
    }
  }

  #inline(schema: Schema, name: string): Type {
    if (schema.properties === undefined) {
      const values = schema.additionalProperties;
      return {
        kind: 'map',
        values: typeof values === 'object' ? this.read(values, `${name}Value`) : { kind: 'unknown' },
      };
    }
    if (this.#named.has(name) || this.#schemas[name])
      throw new Error(`Two types would have the name ${name}`);
    this.#named.set(name, this.#object(schema, name));
    return { kind: 'reference', name };
  }

  #object(schema: Schema, name: string): NamedType {
    return {
      name,
      description: schema.description ?? null,
      kind: 'object',
      fields: this.fields(schema, name),
      open: schema.additionalProperties !== false,
    };
  }

  #enumeration(values: (string | null)[], open: boolean): Type {
    const texts = values.filter((value) => value !== null);
    const enumeration: Type = { kind: 'enumeration', values: texts, open };
    if (texts.length === values.length) return enumeration;
    return { kind: 'union', branches: [enumeration, { kind: 'null' }], discriminator: null };
  }

  #union(schema: Schema, branches: Schema[], name: string): Type {
    return {
      kind: 'union',
      branches: branches.map((branch, index) => this.read(branch, index === 0 ? name : name + index)),
      discriminator: schema.discriminator?.propertyName ?? null,
    };
  }
}

const isObject = (schema: Schema): boolean => schema.type === 'object' && schema.properties !== undefined;

/** `attachments` holds an attachment. */
const singular = (name: string): string =>
  name.endsWith('ies') ? `${name.slice(0, -3)}y` : name.replace(/(?<=ss)es$|(?<!s)s$/, '');

function formatOf(format: string | undefined, name: string): 'date-time' | 'date' | 'binary' | null {
  if (format === undefined || format === 'uri' || format === 'email') return null;
  if (format === 'date-time' || format === 'date' || format === 'binary') return format;
  throw new Error(`${name}: the model does not know the format ${format}`);
}

/** A schema that may be null is described by itself, or by its other branch. */
function aboutOf(schema: Schema): Pick<Field, 'description' | 'limits'> {
  const [inner, ...others] = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  const only = others.length === 0 ? inner : undefined;
  return {
    description: schema.description ?? only?.description ?? null,
    limits: limitsOf({ ...only, ...schema }),
  };
}

function limitsOf(schema: Schema): string | null {
  const parts = [
    rangeOf(schema.minimum, schema.maximum, ''),
    rangeOf(undefined, schema.maxItems, ' items'),
    schema.default === undefined ? null : `default ${JSON.stringify(schema.default)}`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join('; ');
}

function rangeOf(least: number | undefined, most: number | undefined, unit: string): string | null {
  if (most === undefined || most === Number.MAX_SAFE_INTEGER) return null;
  return least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`;
}
