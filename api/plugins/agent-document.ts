import { withAgentViewOnly } from './agent-view-only.ts';
import { PROBLEM_TYPE } from './problem.ts';

/** What an agent of an organization needs: at most 35, so that the document fits into the context of a model. */
export const AGENT_OPERATIONS: readonly string[] = [
  'me.get',
  'inboxes.create',
  'inboxes.list',
  'inboxes.get',
  'inboxes.delete',
  'messages.send',
  'messages.list',
  'messages.get',
  'messages.wait',
  'messages.waitUntilSettled',
  'messages.reply',
  'messages.forward',
  'messages.cancel',
  'messages.changeLabels',
  'threads.get',
  'attachments.upload',
  'attachments.get',
  'attachments.text',
  'drafts.create',
  'drafts.get',
  'drafts.update',
  'drafts.send',
  'drafts.delete',
  'drafts.wait',
  'events.list',
  'events.stream',
  'webhookEndpoints.create',
  'webhookEndpoints.replay',
  'webhookEndpoints.delete',
  'domains.create',
  'domains.verify',
  'apiKeys.create',
  'apiKeys.delete',
  'usage.get',
  'requests.list',
];

/** Headers of people and of keys of a whole organization, which agents rarely have, and a filter of the console. */
const LEFT_OUT_PARAMETERS = ['x-org-id', 'x-env-id', 'send_paused'];
/** For people who document and administer the service. */
const LEFT_OUT_FIELDS = ['x-impersonation', 'x-read-permission', 'tags'];

type Members = Record<string, unknown>;
type Components = Record<string, Record<string, Members>>;

interface OpenApiDocument {
  openapi: string;
  info: Members;
  servers: unknown;
  paths: Record<string, Record<string, Members>>;
  components: Components;
}

/** The part of the complete document for agents: the listed operations and what they refer to, with one answer for errors. */
export function selectForAgents(complete: OpenApiDocument): object {
  const { openapi, info, servers } = complete;
  const { description } = info;
  const { components, ...described } = withAgentViewOnly(complete);
  const schemas = leaveOutFields({ ...components.schemas, Event: untypedEvent(components.schemas ?? {}) });
  const paths = selectPaths({ ...described, components });
  const parameters = { ...components.parameters, ...shareRepeatedParameters(paths) };
  const responses = { Problem: PROBLEM };
  const referred = selectReferred(paths, { ...components, schemas, parameters, responses });
  return {
    openapi,
    info: {
      ...info,
      description: `${description} This part is for agents; /openapi.json has all operations.`,
    },
    servers,
    security: [{ apiKey: [] }],
    paths,
    components: {
      ...referred,
      schemas: shorten(referred.schemas ?? {}),
      securitySchemes: { apiKey: components.securitySchemes?.apiKey },
    },
  };
}

const PROBLEM: Members = {
  description: 'Why the request failed, and in `fix` what to do next.',
  content: { [PROBLEM_TYPE]: { schema: { $ref: '#/components/schemas/Problem' } } },
};

function selectPaths({ paths, components }: OpenApiDocument): OpenApiDocument['paths'] {
  const selected = Object.entries(paths).map(([path, item]) => {
    const operations = Object.entries(item).filter(([, { operationId }]) =>
      AGENT_OPERATIONS.includes(String(operationId)),
    );
    return [
      path,
      Object.fromEntries(operations.map(([method, each]) => [method, selectParts(each, components)])),
    ];
  });
  return Object.fromEntries(selected.filter(([, item]) => Object.keys(item as object).length > 0));
}

function selectParts(operation: Members, { parameters: shared = {} }: Components): Members {
  const parameters = (operation.parameters as Members[] | undefined)?.filter(({ $ref, name }) => {
    const header = name ?? shared[nameOf(String($ref))]?.name;
    return !LEFT_OUT_PARAMETERS.includes(String(header));
  });
  const successes = Object.entries(operation.responses as object).filter(([status]) => /^[23]/.test(status));
  return {
    ...Object.fromEntries(Object.entries(operation).filter(([name]) => !LEFT_OUT_FIELDS.includes(name))),
    ...(parameters ? { parameters } : {}),
    responses: { ...Object.fromEntries(successes), default: { $ref: '#/components/responses/Problem' } },
  };
}

/** Defines parameters once that occur in several operations, in place. */
function shareRepeatedParameters(paths: OpenApiDocument['paths']): Record<string, Members> {
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const uses = new Map<string, number>();
  for (const parameter of operations.flatMap(({ parameters }) => (parameters ?? []) as Members[]))
    uses.set(JSON.stringify(parameter), (uses.get(JSON.stringify(parameter)) ?? 0) + 1);
  const shared: Record<string, Members> = {};
  for (const operation of operations)
    operation.parameters = (operation.parameters as Members[] | undefined)?.map((parameter) => {
      const json = JSON.stringify(parameter);
      const name = `${pascal(String(parameter.name))}Parameter`;
      if (parameter.$ref || (uses.get(json) ?? 0) < 2) return parameter;
      shared[name] ??= parameter;
      return JSON.stringify(shared[name]) === json ? { $ref: `#/components/parameters/${name}` } : parameter;
    });
  return shared;
}

const pascal = (name: string): string =>
  name.replace(/(?:^|[_-])([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** The components that the paths refer to, and what these refer to. */
function selectReferred(paths: object, components: Components): Components {
  const selected: Components = {};
  const queue: unknown[] = [paths];
  for (let json = JSON.stringify(queue.pop()); json; json = JSON.stringify(queue.pop()))
    for (const [, kind = '', name = ''] of json.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)) {
      const component = components[kind]?.[name];
      if (!component || selected[kind]?.[name]) continue;
      selected[kind] = { ...selected[kind], [name]: component };
      queue.push(component);
    }
  return selected;
}

/** The fields of `data` would be a fifth of the document. */
function untypedEvent(schemas: Record<string, Members>): Members {
  const { properties, required } = schemas.MessageReceivedEvent ?? {};
  const type = { $ref: '#/components/schemas/AnyEventType' };
  const data = { type: 'object', description: 'Depends on type: /openapi.json has the fields of each.' };
  return { type: 'object', required, properties: { ...(properties as Members), type, data } };
}

/** What requests must keep to: the sizes of answers are of no use to a client, and their names stand before them. */
const BOUNDS = ['title', 'maxLength', 'minLength', 'maxItems', 'minimum', 'maximum', 'maxProperties'];

/** Fields of answers that the console shows to people. The answers still have them: their schemas are open. */
const FOR_PEOPLE: Record<string, readonly string[]> = {
  CreatedApiKey: ['last_used_at', 'last_used_from'],
  CreatedWebhookEndpoint: [
    'consecutive_failures',
    'last_success_at',
    'pending_deliveries',
    'previous_secret_expires_at',
  ],
  Domain: ['next_check_at'],
  Draft: ['created_by', 'last_edited_by'],
  Inbox: ['send_paused_at', 'send_paused_by'],
};

function shorten(schemas: Record<string, Members>): Record<string, Members> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [
      name,
      schema.additionalProperties === false ? schema : (withoutBounds(schema) as Members),
    ]),
  );
}

function leaveOutFields(schemas: Record<string, Members>): Record<string, Members> {
  const shortened = Object.entries(FOR_PEOPLE).flatMap(([schemaName, left]): [string, Members][] => {
    const schema = schemas[schemaName];
    if (!schema) return [];
    const required = (schema.required as string[]).filter((name) => !left.includes(name));
    const properties = Object.entries(schema.properties as Members).filter(([name]) => !left.includes(name));
    return [[schemaName, { ...schema, required, properties: Object.fromEntries(properties) }]];
  });
  return { ...schemas, ...Object.fromEntries(shortened) };
}

function withoutBounds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutBounds);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, member]) => !BOUNDS.includes(name) || typeof member === 'object',
  );
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutBounds(member)]));
}

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? '';
