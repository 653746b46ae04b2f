import { readOpenApiDocuments } from '../../dev/openapi/documents.ts';
import {
  type Field,
  type NamedType,
  pascal,
  refName,
  type Schema,
  type Type,
  TypeReader,
} from './schema-types.ts';

/** What the SDKs of all languages are printed from. */
export interface Model {
  groups: Group[];
  /** Those that the groups, events and errors need, by name. */
  types: NamedType[];
  /** The known values of an error's `code`. */
  errorCodes: string[];
  /** The operations that are left out, with the reason. */
  leftOut: Record<string, LeftOut>;
}

export type LeftOut = 'alias' | 'staff' | 'no API key may call it';

export interface Group {
  /** The part of the operationId before the dot: `apiKeys`. */
  name: string;
  description: string;
  methods: Method[];
}

export interface Method {
  operationId: string;
  /** The part of the operationId after the dot. */
  name: string;
  summary: string;
  description: string | null;
  /** Which a key needs. */
  permission: string | null;
  verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the names of the path parameters in braces: `/api/v1/inboxes/{inbox_id}/messages`. */
  path: string;
  /** In the order of the path. */
  pathParameters: Parameter[];
  queryParameters: Parameter[];
  /** Such as if-match. What every operation has (the key, x-org-id, x-env-id, idempotency-key) is not listed. */
  headerParameters: Parameter[];
  body: Body;
  answer: Answer;
  /** Takes an Idempotency-Key. */
  idempotent: boolean;
  /** The statuses of its errors. */
  errorStatuses: number[];
}

export interface Parameter extends Field {
  /** The name in the request; `name` is in snake_case and unique in the method. */
  wireName: string;
}

export type Body =
  | { kind: 'none' }
  /** `type` names an object type, whose fields no other parameter of the method shares. */
  | { kind: 'json'; type: string; fields: Field[]; required: boolean }
  /** One file in a form. */
  | { kind: 'file' };

export type Answer =
  | { kind: 'none' }
  | { kind: 'text' }
  /** Server-Sent Events. */
  | { kind: 'events' }
  /** One page of a list; `agentItem` with `view=agent`. */
  | { kind: 'page'; item: Type; agentItem: Type | null }
  | {
      kind: 'json';
      /** For a credential that may read the resource. */
      full: Type;
      /** With `view=agent`; null if the operation has none, or if only parts of the answer change. */
      agent: Type | null;
      /** For a credential that may not read the resource. Null: such a credential gets the full answer, or an error. */
      receipt: Type | null;
      /** Some answers are 204. */
      mayBeEmpty: boolean;
    };

interface OpenApiParameter {
  $ref?: string;
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
}

interface Content {
  content?: Record<string, { schema: Schema }>;
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security?: Record<string, unknown>[];
  parameters?: OpenApiParameter[];
  requestBody?: Content & { required?: boolean };
  responses: Record<string, Content & { $ref?: string }>;
  'x-permission'?: string;
  'x-alias-of'?: string;
  'x-staff-role'?: string;
}

export interface OpenApiDocument {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, OpenApiParameter> };
}

/** Headers that a client sends with any request. */
const COMMON_HEADERS = ['x-org-id', 'x-env-id', 'idempotency-key'];
const PAGE_PARAMETERS = ['limit', 'cursor', 'order'];
const VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** The model of the API in this repository. */
export async function readModel(): Promise<Model> {
  const document = (await readOpenApiDocuments(['/openapi.json'])).get('/openapi.json') ?? '';
  return createModel(JSON.parse(document) as OpenApiDocument);
}

/** @throws Error if an operation has something that the model cannot express. */
export function createModel(document: OpenApiDocument): Model {
  const reader = new OperationReader(document);
  const groups = new Map<string, Group>();
  const leftOut: Record<string, LeftOut> = {};
  for (const [path, item] of Object.entries(document.paths))
    for (const [verb, operation] of Object.entries(item)) {
      const reason = reasonToLeaveOut(operation);
      if (reason) leftOut[operation.operationId] = reason;
      else reader.addTo(groups, path, verb, operation);
    }
  reader.types.reference('Event');
  reader.types.reference('Problem');
  const { types } = reader.types;
  return { groups: [...groups.values()], types, errorCodes: errorCodesOf(types), leftOut };
}

function reasonToLeaveOut(operation: Operation): LeftOut | null {
  if (operation['x-alias-of'] !== undefined) return 'alias';
  if (operation['x-staff-role'] !== undefined) return 'staff';
  // Signing in, the account of a person, probes, and what mail servers and payment providers call.
  if (operation.security && !operation.security.some((scheme) => 'apiKey' in scheme))
    return 'no API key may call it';
  return null;
}

function errorCodesOf(types: NamedType[]): string[] {
  const problem = types.find(({ name }) => name === 'Problem');
  const code = problem?.kind === 'object' ? problem.fields.find(({ name }) => name === 'code')?.type : null;
  if (code?.kind !== 'enumeration') throw new Error('Problem has no code with known values');
  return code.values;
}

class OperationReader {
  readonly types: TypeReader;
  readonly #document: OpenApiDocument;

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.types = new TypeReader(document.components.schemas);
  }

  addTo(groups: Map<string, Group>, path: string, verb: string, operation: Operation): void {
    const { operationId } = operation;
    const [, groupName, name] = /^([a-z][A-Za-z]*)\.([a-z][A-Za-z]*)$/.exec(operationId) ?? [];
    if (!groupName || !name) throw new Error(`${operationId} is not group.method`);
    const group = groups.get(groupName) ?? {
      name: groupName,
      description: this.#describeGroup(groupName, operation.tags[0]),
      methods: [],
    };
    groups.set(groupName, group);
    if (group.methods.some((method) => method.name === name)) throw new Error(`${operationId} exists twice`);
    group.methods.push(this.#method(path, verb.toUpperCase(), operation, name));
  }

  /** Several groups may share a tag: then it describes only the group that has its name. */
  #describeGroup(group: string, tagName: string | undefined): string {
    const tag = this.#document.tags.find(({ name }) => name === tagName);
    const operations = Object.values(this.#document.paths).flatMap((item) => Object.values(item));
    const isShared = operations.some(
      (operation) =>
        operation.tags[0] === tagName &&
        !reasonToLeaveOut(operation) &&
        operation.operationId.split('.')[0] !== group,
    );
    return tag && (!isShared || tag.name.toLowerCase() === group.toLowerCase()) ? tag.description : '';
  }

  #method(path: string, verb: string, operation: Operation, name: string): Method {
    const { operationId } = operation;
    const parameters = (operation.parameters ?? []).map((parameter) => this.#resolve(parameter));
    const known = VERBS.find((one) => one === verb);
    if (!known) throw new Error(`${operationId} has the method ${verb}`);
    const namesInPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, wireName = '']) => wireName);
    const pathParameters = namesInPath.map((wireName) => {
      const parameter = parameters.find((one) => one.in === 'path' && one.name === wireName);
      if (!parameter) throw new Error(`${operationId} does not describe {${wireName}}`);
      return this.#parameter(parameter, operationId, pathName(path, wireName));
    });
    const method: Method = {
      operationId,
      name,
      summary: operation.summary,
      description: operation.description ?? null,
      permission: operation['x-permission'] ?? null,
      verb: known,
      path: pathParameters.reduce(
        (text, { wireName, name: argument }) => text.replace(`{${wireName}}`, `{${argument}}`),
        path,
      ),
      pathParameters,
      queryParameters: this.#parametersIn('query', parameters, operationId),
      headerParameters: this.#parametersIn('header', parameters, operationId),
      body: this.#body(operation),
      answer: this.#answer(operation, parameters),
      idempotent: parameters.some((one) => one.name === 'idempotency-key'),
      errorStatuses: Object.keys(operation.responses)
        .map(Number)
        .filter((status) => status >= 400),
    };
    requireDistinctNames(method);
    return method;
  }

  #resolve(parameter: OpenApiParameter): OpenApiParameter {
    if (parameter.$ref === undefined) return parameter;
    const name = parameter.$ref.split('/').at(-1) ?? '';
    const found = this.#document.components.parameters[name];
    if (!found) throw new Error(`The document has no parameter ${name}`);
    return found;
  }

  #parametersIn(place: 'query' | 'header', parameters: OpenApiParameter[], operationId: string): Parameter[] {
    return parameters
      .filter((one) => one.in === place && !(place === 'header' && COMMON_HEADERS.includes(one.name)))
      .map((one) => this.#parameter(one, operationId, snake(one.name)));
  }

  #parameter({ schema, ...given }: OpenApiParameter, operationId: string, name: string): Parameter {
    const [field] = this.types.fields({ properties: { [name]: schema } }, pascal(operationId));
    if (!field) throw new Error(`${operationId}: ${name} has no schema`);
    const description = given.description ?? field.description;
    return { ...field, required: given.required ?? false, description, wireName: given.name };
  }

  #body({ operationId, requestBody }: Operation): Body {
    if (!requestBody) return { kind: 'none' };
    const [[media, content] = [], ...others] = Object.entries(requestBody.content ?? {});
    if (others.length > 0) throw new Error(`${operationId} takes bodies of several media types`);
    if (media === 'multipart/form-data') return { kind: 'file' };
    const reference = content?.schema.$ref;
    if (media !== 'application/json' || !reference)
      throw new Error(`${operationId} takes a body of ${media} without a name`);
    const type = refName(reference);
    this.types.reference(type);
    const named = this.types.types.find((one) => one.name === type);
    if (named?.kind !== 'object') throw new Error(`${operationId}: its body is no object`);
    return { kind: 'json', type, fields: named.fields, required: requestBody.required ?? false };
  }

  #answer({ operationId, responses }: Operation, parameters: OpenApiParameter[]): Answer {
    const good = Object.entries(responses).filter(([status]) => status < '400');
    const contents = good.map(([, { content = {} }]) => Object.entries(content));
    const medias = new Set(contents.flat().map(([media]) => media));
    if (contents.some((content) => content.length > 1) || medias.size > 1)
      throw new Error(`${operationId} answers several media types`);
    const schemas = contents.flat().map(([, { schema }]) => schema);
    switch ([...medias][0]) {
      case undefined:
        return { kind: 'none' };
      case 'text/plain':
        return { kind: 'text' };
      case 'text/event-stream':
        return { kind: 'events' };
      case 'application/json':
        return this.#page(operationId, schemas, parameters) ?? this.#json(schemas, contents, operationId);
      default:
        throw new Error(`${operationId} answers ${[...medias].join()}`);
    }
  }

  #page(operationId: string, schemas: Schema[], parameters: OpenApiParameter[]): Answer | null {
    const given = PAGE_PARAMETERS.filter((name) => parameters.some((one) => one.name === name));
    const [schema] = schemas;
    const list =
      schema?.$ref === undefined ? undefined : this.#document.components.schemas[refName(schema.$ref)];
    const { has_more, next_cursor, data } = list?.properties ?? {};
    if (!has_more && !next_cursor && !given.includes('cursor')) return null;
    if (given.length !== 3 || schemas.length !== 1 || !has_more || !next_cursor || !data?.items)
      throw new Error(`${operationId} is half a list`);
    const items = this.#leaves(data.items, operationId);
    const { full, agent } = byView(items);
    return { kind: 'page', item: full, agentItem: agent };
  }

  #json(schemas: Schema[], contents: unknown[][], operationId: string): Answer {
    const leaves = schemas.flatMap((schema) => this.#leaves(schema, operationId));
    const receipts = leaves.filter(isReceipt);
    const answers = leaves.filter((leaf) => !isReceipt(leaf));
    const { full, agent } = byView(answers);
    return {
      kind: 'json',
      full,
      agent,
      receipt: receipts.length === 0 ? null : unionOf(receipts),
      mayBeEmpty: contents.some((content) => content.length === 0),
    };
  }

  /** What an answer may be, without unions of unions. */
  #leaves(schema: Schema, operationId: string): Type[] {
    if (schema.$ref === undefined) throw new Error(`${operationId} answers a type without a name`);
    const name = refName(schema.$ref);
    const named = this.#document.components.schemas[name];
    const branches = named?.oneOf ?? named?.anyOf;
    if (!branches || name === 'Event') return [this.types.reference(name)];
    return branches.flatMap((branch) => this.#leaves(branch, operationId));
  }
}

const isNamed = (type: Type, pattern: RegExp) => type.kind === 'reference' && pattern.test(type.name);
const isReceipt = (type: Type): boolean => isNamed(type, /^Minimal[A-Z]/);
const AGENT_MESSAGE = /^AgentMessage$/;
const ANY_MESSAGE = /^(?:Agent)?Message(?:ListItem)?$/;

function byView(leaves: Type[]): { full: Type; agent: Type | null } {
  const full = unionOf(leaves.filter((leaf) => !isNamed(leaf, AGENT_MESSAGE)));
  const agentMessage = leaves.find((leaf) => isNamed(leaf, AGENT_MESSAGE));
  if (!agentMessage) return { full, agent: null };
  return { full, agent: unionOf([agentMessage, ...leaves.filter((leaf) => !isNamed(leaf, ANY_MESSAGE))]) };
}

function unionOf(types: Type[]): Type {
  const distinct = types.filter(
    (type, index) => types.findIndex((other) => JSON.stringify(other) === JSON.stringify(type)) === index,
  );
  const [first] = distinct;
  if (!first) throw new Error('An answer has no type');
  return distinct.length === 1 ? first : { kind: 'union', branches: distinct, discriminator: 'object' };
}

/** `id` is named after what it is the id of: `/messages/{id}/reply` has `message_id`. */
function pathName(path: string, wireName: string): string {
  if (wireName !== 'id') return snake(wireName);
  const segment = path.slice(0, path.indexOf('/{id}')).split('/').at(-1) ?? '';
  return `${snake(segment)
    .replace(/ies$/, 'y')
    .replace(/(?<=x)es$|s$/, '')}_id`;
}

const snake = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replaceAll('-', '_');

/** Languages with named arguments take them all in one list. */
function requireDistinctNames(method: Method): void {
  const names = [
    ...method.pathParameters,
    ...method.queryParameters,
    ...method.headerParameters,
    ...(method.body.kind === 'json' ? method.body.fields : []),
  ].map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated) throw new Error(`${method.operationId} has two parameters ${repeated}`);
}
