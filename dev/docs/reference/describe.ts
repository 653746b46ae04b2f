import { createModel } from '../../../clients/generate/model.ts';
import { ERROR_CODES } from '../../../platform/errors.ts';
import { methodsById, pythonOf, typescriptOf } from './client-samples.ts';
import { createExamples } from './examples.ts';
import { createFieldReader, type Field, type FieldReader } from './fields.ts';
import {
  type Answer,
  type Call,
  createResolver,
  type Group,
  type OpenApi,
  refName,
  type Schema,
} from './openapi.ts';
import { curlOf } from './samples.ts';

/** An operation as the reference shows it, for both representations of its page. */
export interface DescribedCall {
  id: string;
  title: string;
  method: string;
  path: string;
  isWebhook: boolean;
  /** Paragraphs and facts in Markdown. */
  description: string;
  facts: readonly string[];
  fields: readonly { title: string; fields: readonly Field[] }[];
  answers: readonly { status: string; description: string; type: string; typeName: string | undefined }[];
  errors: readonly DescribedError[];
  samples: readonly Sample[];
}

export interface DescribedError {
  status: string;
  description: string;
  codes: readonly string[];
}

export interface Sample {
  title: string;
  blocks: readonly { language: string; code: string }[];
}

export interface DescribedObject {
  name: string;
  description: string;
  fields: readonly Field[];
}

export interface DescribedGroup {
  name: string;
  slug: string;
  description: string;
  calls: readonly DescribedCall[];
  objects: readonly DescribedObject[];
}

/** Headers of most operations, which the guide to the API describes once. */
const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'x-org-id': '`x-org-id`',
  'x-env-id': '`x-env-id`',
  'idempotency-key': '`Idempotency-Key`',
};

/** Describes every operation and object of the document. Objects belong to the first group that mentions them. */
export function describeReference(document: OpenApi, groups: readonly Group[]): DescribedGroup[] {
  const resolver = createResolver(document);
  const owners = new Map<string, string>();
  for (const group of groups)
    for (const name of namedObjects(group, document)) if (!owners.has(name)) owners.set(name, group.slug);
  const reader = createFieldReader(resolver, (name) => owners.has(name));
  const exampleOf = createExamples(resolver);
  const methods = methodsById(createModel(document as never));
  return groups.map((group) => ({
    ...group,
    calls: group.calls.map((call) => describeCall(call, { resolver, reader, exampleOf, methods })),
    objects: [...owners]
      .filter(([, slug]) => slug === group.slug)
      .map(([name]) => ({
        name,
        description: document.components.schemas[name]?.description ?? '',
        fields: reader.readFields({ $ref: `#/components/schemas/${name}` }, false),
      })),
  }));
}

interface Tools {
  resolver: ReturnType<typeof createResolver>;
  reader: FieldReader;
  exampleOf: (schema: Schema, name?: string) => unknown;
  methods: ReturnType<typeof methodsById>;
}

function describeCall(call: Call, tools: Tools): DescribedCall {
  const { method, path, operation, isWebhook } = call;
  const { resolver, reader } = tools;
  const parameters = (operation.parameters ?? []).map(resolver.parameter);
  const own = parameters.filter((parameter) => !(parameter.name in COMMON_HEADERS));
  const fieldsIn = (where: string): Field[] =>
    own
      .filter((parameter) => parameter.in === where)
      .map(({ name, schema = {}, description, required = false }) => ({
        name,
        ...reader.describeType(schema),
        isRequired: required,
        description: reader.describe({ ...schema, description: description ?? schema.description }, true),
      }));
  const responses = Object.entries(operation.responses).map(([status, answer]) => ({
    status,
    answer: resolver.answer(answer),
  }));
  const isError = ({ status }: { status: string }) => /^[45]/.test(status) && !isWebhook;
  return {
    id: operation.operationId,
    title: isWebhook ? path : (operation.summary ?? operation.operationId),
    method,
    path,
    isWebhook,
    description: operation.description ?? '',
    facts: isWebhook
      ? []
      : factsOf(
          call,
          parameters.map(({ name }) => name),
        ),
    fields: [
      { title: 'Path', fields: fieldsIn('path') },
      { title: 'Query', fields: fieldsIn('query') },
      { title: 'Headers', fields: fieldsIn('header') },
      { title: 'Body', fields: bodyFields(call, tools) },
    ].filter(({ fields }) => fields.length > 0),
    answers: responses
      .filter((response) => !isError(response))
      .map((response) => describeAnswer(response, tools)),
    errors: responses.filter(isError).map(({ status, answer }) => describeError(status, answer)),
    samples: samplesOf(call, tools),
  };
}

function factsOf({ operation }: Call, parameters: readonly string[]): string[] {
  const { operationId, security } = operation;
  const permission = operation['x-permission'];
  const headers = parameters.flatMap((name) => COMMON_HEADERS[name] ?? []);
  const isForPeople = security?.length === 1 && 'session' in (security[0] ?? {});
  const role = operation['x-staff-role'];
  const credential = operation['x-credential'];
  return [
    `Operation \`${operationId}\``,
    permission === undefined ? '' : `Permission \`${permission}\``,
    role === undefined ? '' : `For staff with the role \`${role}\``,
    credential === undefined ? '' : `Credential: ${credential}`,
    role === undefined && isForPeople ? 'For signed-in people: needs a session' : '',
    security?.length === 0 ? 'Needs no credential' : '',
    headers.length === 0 ? '' : `Headers ${headers.join(', ')}`,
  ].filter((fact) => fact !== '');
}

function bodyFields({ operation }: Call, { reader }: Tools): Field[] {
  const [content] = Object.values(operation.requestBody?.content ?? {});
  return content?.schema ? reader.readFields(content.schema, true) : [];
}

function describeAnswer({ status, answer }: { status: string; answer: Answer }, { resolver, reader }: Tools) {
  const [[type = '', content] = []] = Object.entries(answer.content ?? {});
  const { description = '' } = answer;
  if (!content?.schema) return { status, description, type: '', typeName: undefined };
  if (!type.includes('json')) return { status, description, type: `\`${type}\``, typeName: undefined };
  const schema = resolver.schema(content.schema);
  const item = schema.properties?.data?.items;
  if (item && schema.properties?.has_more) {
    const described = reader.describeType(item);
    return { status, description, type: `a page of ${described.type}`, typeName: described.typeName };
  }
  return { status, description, ...reader.describeType(content.schema) };
}

function describeError(status: string, { description = '' }: Answer): DescribedError {
  const codes = Object.entries(ERROR_CODES)
    .filter(([, code]) => String(code.status) === status)
    .map(([code]) => code);
  return { status, description, codes };
}

function samplesOf(call: Call, tools: Tools): Sample[] {
  const { operation, isWebhook } = call;
  const { resolver, exampleOf } = tools;
  const [bodyContent] = Object.entries(operation.requestBody?.content ?? {});
  const body = bodyContent?.[1].schema ? exampleOf(bodyContent[1].schema) : undefined;
  if (isWebhook) return [{ title: 'Body', blocks: [{ language: 'json', code: pretty(body) }] }];
  const success = Object.entries(operation.responses).find(([status]) => /^[23]/.test(status));
  const [, answer] = success ?? [];
  const content = answer ? resolver.answer(answer).content?.['application/json']?.schema : undefined;
  return [
    { title: 'Request', blocks: requestsOf(call, tools, { contentType: bodyContent?.[0], body }) },
    ...(content
      ? [
          {
            title: `Answer ${success?.[0]}`,
            blocks: [{ language: 'json', code: pretty(exampleOf(content)) }],
          },
        ]
      : []),
  ];
}

/** The call with curl, and with the clients if they have it. */
function requestsOf(
  call: Call,
  { resolver, exampleOf, methods }: Tools,
  { contentType, body }: { contentType: string | undefined; body: unknown },
): Sample['blocks'] {
  const query = Object.fromEntries(
    (call.operation.parameters ?? [])
      .map(resolver.parameter)
      .filter((parameter) => parameter.in === 'query' && parameter.required)
      .map(({ name, schema = {} }) => [name, String(exampleOf(schema, name))]),
  );
  const curl = { language: 'sh', code: curlOf(call, { contentType, body, query }) };
  const found = methods.get(call.operation.operationId);
  if (!found) return [curl];
  const { group, method } = found;
  const fields = { ...query, ...(method.body.kind === 'json' ? (body as object) : {}) };
  return [
    curl,
    { language: 'ts', code: typescriptOf(group, method, { fields }) },
    { language: 'python', code: pythonOf(group, method, { fields }) },
  ];
}

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Objects with fields that answers, or parts of requests, refer to by name, in the order of their mention. */
function namedObjects({ calls }: Group, { components }: OpenApi): string[] {
  const found = new Set<string>();
  const seen = new Set<string>();
  const visit = (value: unknown, isBody: boolean): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('$ref' in value && typeof value.$ref === 'string') {
      if (!value.$ref.includes('/schemas/')) return;
      const name = refName(value.$ref);
      const schema = components.schemas[name];
      if (!isBody && schema && hasSection(name, schema)) found.add(name);
      if (seen.has(name)) return;
      seen.add(name);
      visit(schema, false);
      return;
    }
    for (const [key, member] of Object.entries(value)) if (key !== 'examples') visit(member, false);
  };
  for (const { operation } of calls) {
    for (const answer of Object.values(operation.responses)) visit(answer.content, false);
    for (const content of Object.values(operation.requestBody?.content ?? {})) visit(content.schema, true);
  }
  return [...found];
}

/** Pages of lists, errors and receipts are described where they are answered. */
const hasSection = (name: string, { properties }: Schema): boolean =>
  properties !== undefined && !/^(?:Minimal|Problem$|ItemProblem$)|List$|Event$/.test(name);
