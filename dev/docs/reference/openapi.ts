/** The parts of the OpenAPI document that the reference shows. */
export interface Schema {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string | readonly string[];
  format?: string;
  const?: unknown;
  enum?: readonly unknown[];
  'x-known-values'?: readonly unknown[];
  default?: unknown;
  examples?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  additionalProperties?: boolean | Schema;
}

export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

type Content = Record<string, { schema?: Schema }>;

export interface Answer {
  $ref?: string;
  description?: string;
  content?: Content;
}

export interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  tags?: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, Answer>;
  security?: readonly Record<string, unknown>[];
  'x-permission'?: string;
  'x-read-permission'?: string;
  'x-staff-role'?: string;
  'x-credential'?: string;
  'x-alias-of'?: string;
}

export interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  webhooks?: Record<string, { post: Operation }>;
  tags?: readonly { name: string; description?: string }[];
  components: {
    schemas: Record<string, Schema>;
    parameters?: Record<string, Parameter>;
    responses?: Record<string, Answer>;
  };
}

/** One operation, or one request that receivers of webhooks get. */
export interface Call {
  method: string;
  /** For a webhook: the type of its event. */
  path: string;
  operation: Operation;
  isWebhook: boolean;
}

export interface Group {
  name: string;
  slug: string;
  description: string;
  calls: readonly Call[];
}

export const refName = (reference: string): string => reference.split('/').at(-1) ?? '';

/** Finds what a document refers to. */
export function createResolver({ components }: OpenApi) {
  return {
    schema: (schema: Schema): Schema => {
      if (schema.$ref === undefined) return schema;
      const { $ref, ...beside } = schema;
      return { ...components.schemas[refName($ref)], ...beside };
    },
    parameter: (parameter: Parameter): Parameter =>
      parameter.$ref === undefined
        ? parameter
        : (components.parameters?.[refName(parameter.$ref)] ?? parameter),
    answer: (answer: Answer): Answer =>
      answer.$ref === undefined
        ? answer
        : { ...components.responses?.[refName(answer.$ref)], $ref: answer.$ref },
  };
}
export type Resolver = ReturnType<typeof createResolver>;

const slugOf = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, '-');

/** The operations by subject, in the document's order; second paths of an operation are left out. */
export function readGroups(document: OpenApi): Group[] {
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation['x-alias-of'] === undefined)
      .map(
        ([method, operation]): Call => ({ method: method.toUpperCase(), path, operation, isWebhook: false }),
      ),
  );
  const webhooks = Object.entries(document.webhooks ?? {}).map(
    ([path, { post }]): Call => ({ method: 'POST', path, operation: post, isWebhook: true }),
  );
  const groups = (document.tags ?? []).map(({ name, description = '' }) => ({
    name,
    slug: `reference/${slugOf(name)}`,
    description,
    calls: [...calls, ...webhooks].filter(({ operation }) => operation.tags?.[0] === name),
  }));
  return groups.filter((group) => group.calls.length > 0);
}
