import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { eventSchemaName } from '../events/events.schemas.ts';
import { describeAgentView, describeListedAgentMessages } from './openapi-agent-view.ts';
import { openAnswers } from './openapi-answers.ts';
import { REQUEST_EXAMPLES } from './openapi-examples.ts';
import { nameNullableObjects } from './openapi-parts.ts';
import {
  namedEnumerations,
  type Parameter,
  shareEnumerations,
  shareParameters,
} from './openapi-shared-parts.ts';
import { PROBLEM_TYPE } from './problem.ts';

/** The parts of the document that are completed here. */
interface OpenApiDocument {
  tags?: { name: string; description?: string }[];
  paths?: Record<string, Record<string, OpenApiOperation> | undefined>;
  components?: Components;
}

interface Components {
  schemas?: Record<string, object>;
  responses?: Record<string, object>;
  headers?: Record<string, object>;
  parameters?: Record<string, object>;
}

interface OpenApiOperation {
  operationId: string;
  requestBody?: { content?: Record<string, { schema?: BodySchema }> };
  parameters?: Parameter[];
  responses: Record<string, OpenApiResponse>;
}

interface OpenApiResponse {
  $ref?: string;
  description?: string;
  headers?: object;
  content?: Record<string, { schema?: BodySchema }>;
}

interface BodySchema {
  $ref?: string;
  title?: string;
  type?: string;
  format?: string;
  description?: string;
  required?: string[];
  properties?: Record<string, BodySchema>;
  items?: BodySchema;
  default?: unknown;
  anyOf?: { $ref?: string }[];
  enum?: unknown[];
}

/** Second paths of an operation, which the specification names. Their ids have the operation's with this in place of the dot. */
export const ALIAS = /(?:Alias|Unversioned)\./;

/** The groups of operations, in the order of the documentation page. A guard test compares them with the routes. */
export const TAGS: readonly { name: string; description: string }[] = [
  { name: 'Inboxes', description: 'Addresses that send and receive.' },
  { name: 'Drafts', description: 'Unsent messages: compose, schedule, ask for approval, send.' },
  { name: 'Messages', description: 'Send, reply, forward, search, label, and wait for mail.' },
  { name: 'Threads', description: 'Conversations of an inbox.' },
  { name: 'Attachments', description: 'Upload files before they are sent, and download received ones.' },
  { name: 'Webhook endpoints', description: 'Receivers of events.' },
  { name: 'Webhooks', description: 'The requests that receivers of events get.' },
  { name: 'Webhook deliveries', description: 'What was sent to receivers, attempt by attempt.' },
  { name: 'Events', description: 'What happened, as a list and as a live stream.' },
  { name: 'Domains', description: 'Custom domains and their DNS records.' },
  { name: 'Deliverability', description: 'Suppressions, allow and block lists.' },
  { name: 'Metrics', description: 'Counts by hour, and a deliverability score.' },
  { name: 'Usage', description: 'Counters and limits.' },
  { name: 'API keys', description: 'Credentials of agents.' },
  {
    name: 'Organization',
    description: 'Settings, members, environments, policies, retention, audit log.',
  },
  { name: 'SSO', description: 'Signing in through the identity provider of an organization.' },
  { name: 'Export', description: 'All data of an organization as one archive.' },
  { name: 'Billing', description: 'Subscriptions with Stripe, if the operator has turned billing on.' },
  { name: 'Sign-in', description: 'Accounts and sessions of people.' },
  { name: 'MFA', description: 'Second factors and passkeys.' },
  { name: 'User', description: 'The signed-in person.' },
  {
    name: 'Providers',
    description: 'For mail servers and providers that deliver mail or reports to this service.',
  },
  { name: 'Health', description: 'For operators: probes.' },
  { name: 'Admin', description: 'For the staff who operate the service.' },
];

/** Clients send it as bytes. */
const MAIL_TYPE = 'message/rfc822';

const PROBLEM_NAMES: Record<string, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'RequestTimeout',
  409: 'Conflict',
  412: 'PreconditionFailed',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  422: 'UnprocessableContent',
  428: 'PreconditionRequired',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
};
const RETRY_AFTER = {
  description:
    'Seconds to wait before the next attempt. Absent if repeating does not help, as at a limit of the month.',
  schema: { type: 'integer', minimum: 0 },
};
const REFERENCE_TO_RETRY_AFTER = { $ref: '#/components/headers/RetryAfter' };

/**
 * Completes the generated document for readers and client generators: groups, one definition of what operations share, names
 * for the bodies that routes build in place, examples, and events as a union of their types.
 */
export function completeDocument<Document extends object>(generated: Document): Document {
  // The routes validate and serialize by parts of the generated one.
  const document = JSON.parse(JSON.stringify(generated)) as OpenApiDocument;
  document.tags = TAGS.map((tag) => ({ ...tag }));
  document.components ??= {};
  const { components } = document;
  components.headers = { ...components.headers, RetryAfter: RETRY_AFTER };
  const operations = listOperations(document);
  describeAgentView(operations);
  for (const operation of operations) nameBodies(operation, components);
  describeListedAgentMessages(components.schemas ?? {});
  discriminateUnions(components);
  makeDefaultsOptional(operations, components);
  requireContent(components);
  components.schemas = { ...components.schemas, Event: unionOfEvents() };
  for (const [name, example] of Object.entries(REQUEST_EXAMPLES))
    components.schemas[name] = { ...components.schemas[name], examples: [example] };
  nameNullableObjects(components.schemas);
  openAnswers(document);
  shareEnumerations(document);
  Object.assign(components.schemas, namedEnumerations(document));
  const parameters: Record<string, object> = {};
  for (const operation of operations)
    if (operation.parameters) operation.parameters = shareParameters(operation.parameters, parameters);
  components.parameters = parameters;
  return document as Document;
}

function nameBodies(operation: OpenApiOperation, components: Components): void {
  const mail = operation.requestBody?.content?.[MAIL_TYPE]?.schema;
  if (mail) mail.format = 'binary';
  nameBody(operation.requestBody, `${typeName(operation)}Body`, components);
  for (const [status, response] of Object.entries(operation.responses))
    if (PROBLEM_NAMES[status]) operation.responses[status] = shareProblem(status, response, components);
    else nameBody(response, `${typeName(operation)}Result`, components);
}

/** Validation fills defaults in before it checks what is required, so clients need not send them. */
function makeDefaultsOptional(operations: OpenApiOperation[], { schemas = {} }: Components): void {
  for (const { parameters = [], requestBody } of operations) {
    for (const parameter of parameters)
      if (parameter.schema?.default !== undefined) delete parameter.required;
    const reference = requestBody?.content?.['application/json']?.schema?.$ref;
    if (reference !== undefined) makeMembersOptional(schemas[nameOf(reference)]);
  }
}

/**
 * What a message cannot do without, although its schema knows another way: an empty list of recipients if `cc` or `bcc` has
 * some, and no text if there is HTML.
 */
function requireContent({ schemas = {} }: Components): void {
  const send: BodySchema = schemas.SendMessage ?? {};
  const reply: BodySchema = schemas.ReplyToMessage ?? {};
  const [recipients] = (send.properties?.to?.anyOf ?? []) as BodySchema[];
  requireMember(send, 'to', { ...recipients, description: 'Recipients; empty if only cc or bcc have some.' });
  requireMember(reply, 'text_body', { description: 'Null if there is only html_body.' });
}

function requireMember(schema: BodySchema, name: string, described: BodySchema): void {
  const { anyOf: _, ...member } = schema.properties?.[name] ?? {};
  schema.required = [...(schema.required ?? []), name];
  schema.properties = { ...schema.properties, [name]: { ...member, ...described } };
}

function makeMembersOptional(schema: BodySchema | undefined): void {
  if (schema?.required)
    schema.required = schema.required.filter((name) => schema.properties?.[name]?.default === undefined);
  for (const member of Object.values(schema?.properties ?? {})) makeMembersOptional(member);
}

function listOperations({ paths = {} }: OpenApiDocument): OpenApiOperation[] {
  return Object.values(paths).flatMap((item) => Object.values(item ?? {}));
}

/** Defines each error response once. One that differs, such as a page for browsers, stays in its operation. */
function shareProblem(status: string, response: OpenApiResponse, components: Components): OpenApiResponse {
  const name = PROBLEM_NAMES[status] ?? '';
  if (Object.keys(response.content ?? {}).join() !== PROBLEM_TYPE) return response;
  const full = ['429', '503'].includes(status)
    ? { ...response, headers: { 'retry-after': REFERENCE_TO_RETRY_AFTER } }
    : response;
  components.responses ??= {};
  components.responses[name] ??= full;
  return JSON.stringify(components.responses[name]) === JSON.stringify(full)
    ? { $ref: `#/components/responses/${name}` }
    : full;
}

/**
 * Moves a body without a name to the components: generated clients would invent a type for each operation.
 *
 * @param fallback for what is neither a list nor a union.
 */
function nameBody(
  message: { content?: Record<string, { schema?: BodySchema }> } | undefined,
  fallback: string,
  components: Components,
): void {
  const body = message?.content?.['application/json'];
  if (!body?.schema?.type && !body?.schema?.anyOf) return;
  const name = listName(body.schema) ?? unionName(body.schema) ?? body.schema.title ?? fallback;
  components.schemas = { ...components.schemas, [name]: { title: name, ...body.schema } };
  body.schema = referTo(name);
}

/** `DraftList` of a page of drafts, or of all. */
function listName({ properties }: BodySchema): string | undefined {
  const item = properties?.data?.items?.$ref;
  return item && `${nameOf(item).replace(/(Summary|ListItem)$/, '')}List`;
}

/** `MessageOrTimedOut`; of a resource and its minimal response `DraftOrMinimalDraft`. */
function unionName({ anyOf = [] }: BodySchema): string | undefined {
  const names = anyOf.map(({ $ref = '' }) => nameOf($ref));
  return names.length === 0 || names.includes('') ? undefined : names.join('Or');
}

/** Each branch of a union names itself by its `object`, so that clients need not try one after the other. */
function discriminateUnions({ schemas = {} }: Components): void {
  for (const [name, union] of Object.entries(schemas as Record<string, BodySchema>)) {
    if (unionName(union) === undefined) continue;
    const { anyOf: branches = [], ...rest } = union;
    const mapping = branches.map(({ $ref = '' }) => [kindOf(schemas[nameOf($ref)]), $ref] as const);
    // Two views of one resource.
    if (new Set(mapping.map(([kind]) => kind)).size < branches.length) continue;
    schemas[name] = {
      ...rest,
      oneOf: branches,
      discriminator: { propertyName: 'object', mapping: Object.fromEntries(mapping) },
    };
  }
}

const kindOf = (schema: BodySchema | undefined) => schema?.properties?.object?.enum?.[0];

/** `AdminUsersSuspend` of `adminUsers.suspend`. */
const typeName = ({ operationId }: OpenApiOperation): string =>
  operationId.replace(ALIAS, '.').replace(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase());

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? '';
const referTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** Routes serialize events of every type by one schema, because choosing among them would take time. */
function unionOfEvents() {
  return {
    title: 'Event',
    description:
      'An event, in the envelope of webhooks. More types may be added: ignore those you do not know.',
    oneOf: EVENT_TYPES.map((type) => referTo(eventSchemaName(type))),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(
        EVENT_TYPES.map((type) => [type, `#/components/schemas/${eventSchemaName(type)}`]),
      ),
    },
  };
}
