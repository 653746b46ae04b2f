import type { Operation } from './contract.ts';
import { formCall } from './form.ts';
import type { Call } from './test-app.ts';

/** What an id in a request refers to. */
export const RESOURCES = [
  'organization',
  'environment',
  'inbox',
  'draft',
  'message',
  'thread',
  'attachment',
  'endpoint',
  'delivery',
  'job',
  'event',
  'domain',
  'apiKey',
  'export',
  'suppression',
  'listEntry',
  'member',
  'invitation',
  'ssoConfiguration',
  'ssoSetupLink',
  'approvedRecipient',
  'connection',
] as const;
export type Resource = (typeof RESOURCES)[number];
export type ResourceIds = Partial<Record<Resource, string>>;

/** By the segment of the path before the parameter. */
const RESOURCE_BY_SEGMENT: Record<string, Resource> = {
  organizations: 'organization',
  inboxes: 'inbox',
  drafts: 'draft',
  messages: 'message',
  threads: 'thread',
  attachments: 'attachment',
  endpoints: 'endpoint',
  'webhook-endpoints': 'endpoint',
  deliveries: 'delivery',
  jobs: 'job',
  events: 'event',
  domains: 'domain',
  'api-keys': 'apiKey',
  exports: 'export',
  suppressions: 'suppression',
  members: 'member',
  environments: 'environment',
  invitations: 'invitation',
  sso: 'ssoConfiguration',
  'setup-links': 'ssoSetupLink',
  'approved-recipients': 'approvedRecipient',
  connections: 'connection',
  '{effect}': 'listEntry',
};
/** Path parameters that are no ids. */
const PATH_WORDS: Record<string, string> = { direction: 'send', effect: 'block', label: 'inbox' };

/** Ids in queries and bodies by name; `operationId name` where the name has another meaning elsewhere. */
const RESOURCE_BY_NAME: Record<string, Resource> = {
  env_id: 'environment',
  inbox_id: 'inbox',
  catch_all_inbox_id: 'inbox',
  inbox_ids: 'inbox',
  thread_id: 'thread',
  message_id: 'message',
  ids: 'message',
  in_reply_to: 'message',
  attachment_id: 'attachment',
  actor_id: 'apiKey',
  created_by_user_id: 'member',
  created_by_key_id: 'apiKey',
  credential_id: 'apiKey',
  user_id: 'member',
  resource_id: 'message',
  starting_after: 'event',
  'events.stream after': 'event',
  'messages.wait since': 'message',
  'threads.wait since': 'message',
};
/** Names like ids that the caller chooses. */
const CHOSEN_BY_CALLER = ['client_id', 'content_id'];
/** Other query parameters. A new one must be listed here or above. */
const PLAIN_QUERY = [
  ...['send_paused', 'verified', 'state'],
  ...[
    'limit',
    'cursor',
    'order',
    'start',
    'end',
    'before',
    'after',
    'since',
    'type',
    'types',
    'status',
    'send_status',
    'seen_version',
    'event_type',
  ],
  ...['direction', 'label', 'from', 'to', 'subject', 'has_attachments', 'q', 'timeout_seconds', 'domain'],
  ...['format', 'max_chars', 'offset', 'links', 'for'],
  ...[
    'email',
    'search',
    'origin',
    'reason',
    'fresh',
    'purge',
    'revoke_children',
    'view',
    'action',
    'resource_type',
    'last_used_before',
    'failed',
    'path',
    'until',
  ],
];

/** A place in a request that takes an id. */
export interface IdPosition {
  where: 'path' | 'query' | 'body';
  /** For a body the path of the member, with `[]` for an array: `attachments[].attachment_id`. */
  name: string;
  resource: Resource;
}

type Schema = Record<string, unknown> & {
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
};

/** @throws Error for a parameter that the tables above do not know: a new route must join them. */
export function findIdPositions(operation: Operation, components: Record<string, object>): IdPosition[] {
  const { operationId, path, parameters = [], requestBody } = operation;
  const positions: IdPosition[] = [];
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
    if (name in PATH_WORDS) continue;
    positions.push({ where: 'path', name, resource: resourceOfPathParameter(path, name) });
  }
  for (const { name } of parameters.filter((parameter) => parameter.in === 'query')) {
    const resource = RESOURCE_BY_NAME[`${operationId} ${name}`] ?? RESOURCE_BY_NAME[name];
    if (resource) positions.push({ where: 'query', name, resource });
    else if (!PLAIN_QUERY.includes(name)) throw new Error(`${operationId}: unknown query parameter ${name}`);
  }
  const body = requestBody?.content['application/json']?.schema;
  for (const name of body ? bodyMembers(body as Schema, components) : []) {
    const leaf = name.replace(/\[\]$/, '').split('.').at(-1) ?? '';
    const resource = RESOURCE_BY_NAME[leaf];
    if (resource) positions.push({ where: 'body', name, resource });
    else if (/(^|_)ids?$/.test(leaf) && !CHOSEN_BY_CALLER.includes(leaf))
      throw new Error(`${operationId}: unknown id ${name} in the body`);
  }
  return positions;
}

function resourceOfPathParameter(path: string, name: string): Resource {
  const segments = path.split('/');
  const before = segments[segments.indexOf(`{${name}}`) - 1] ?? '';
  const resource = RESOURCE_BY_SEGMENT[before];
  if (!resource) throw new Error(`${path}: unknown path parameter ${name}`);
  return resource;
}

/** Names of all members of a body, with those of nested objects and arrays. */
function* bodyMembers(schema: Schema, components: Record<string, object>, prefix = ''): Generator<string> {
  const reference = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;
  if (reference !== undefined)
    yield* bodyMembers((components[reference] ?? {}) as Schema, components, prefix);
  for (const branch of schema.anyOf ?? []) yield* bodyMembers(branch, components, prefix);
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const isList = [member.type].flat().includes('array') && (member.items as Schema)?.type === 'string';
    yield `${prefix}${name}${isList ? '[]' : ''}`;
    yield* bodyMembers(member, components, `${prefix}${name}.`);
  }
  if (schema.items) yield* bodyMembers(schema.items, components, prefix.replace(/\.$/, '[].'));
}

/** Returns a valid request of an operation with the given ids in its path. */
export function buildRequest(operation: Operation, ids: ResourceIds): { path: string; call: Call } {
  const { path, method, operationId, requestBody, parameters = [] } = operation;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = PATH_WORDS[name] ?? ids[resourceOfPathParameter(path, name)];
    if (value === undefined) throw new Error(`${operationId}: there is no id for ${name}`);
    return encodeURIComponent(value);
  });
  const query = parameters.some(({ name }) => name === 'timeout_seconds') ? '?timeout_seconds=1' : '';
  const name = operationId.replace('Alias', '').replace('Unversioned', '');
  const body = BODIES[name];
  const isForm = requestBody?.content['multipart/form-data'] !== undefined;
  if (requestBody?.required && !isForm && body === undefined)
    throw new Error(`${operationId}: there is no valid body for it in BODIES`);
  return {
    path: `${filled}${query}`,
    call: {
      prefix: '',
      method: method as NonNullable<Call['method']>,
      ...(isForm ? formCall([{ filename: 'a.txt', content: 'a' }]) : {}),
      ...(body === undefined ? {} : { body }),
    },
  };
}

/** Returns the request with an id at a position of its query or body. */
export function withId(
  { path, call }: { path: string; call: Call },
  { where, name }: IdPosition,
  id: string,
): { path: string; call: Call } {
  if (where === 'query') {
    const separator = path.includes('?') ? '&' : '?';
    return { path: `${path}${separator}${name}=${encodeURIComponent(id)}`, call };
  }
  const [head = '', ...rest] = name.split('.');
  const inList = (member: string, value: unknown) => (member.endsWith('[]') ? [value] : value);
  const nested = rest.reduceRight<unknown>(
    (value, member) => ({ [member.replace('[]', '')]: inList(member, value) }),
    id,
  );
  return {
    path,
    call: { ...call, body: { ...(call.body as object), [head.replace('[]', '')]: inList(head, nested) } },
  };
}

/** A valid body of every operation that has one. */
export const BODIES: Record<string, unknown> = {
  'billing.checkout': {
    tier: 'developer',
    success_url: 'http://localhost:3000/billing',
    cancel_url: 'http://localhost:3000/billing',
  },
  'billing.changePlan': { tier: 'business' },
  'billing.takeStripeEvent': {},
  'adminOrganizations.extendGrace': { days: 7, note: 'x' },
  'organization.delete': { name: 'x' },
  'members.update': { role: 'viewer' },
  'organization.update': { name: 'Renamed' },
  'organization.transferOwnership': { user_id: 'usr_x' },
  'organization.createEnvironment': { name: 'Staging' },
  'organization.updateEnvironment': { name: 'Renamed' },
  'invitations.create': { email: 'invited@people.example', role: 'viewer' },
  'invitations.accept': { token: 'x' },
  'policies.update': { session_max_age_hours: 720 },
  'policies.preview': { require_mfa: true },
  'apiKeys.create': { name: 'x' },
  'apiKeys.update': { name: 'y' },
  'apiKeys.rotate': { overlap_seconds: 60 },
  'members.offboard': { revoke_keys: true },
  'domains.create': { domain_name: 'new.example.com' },
  'domains.update': { catch_all_inbox_id: null },
  'drafts.approve': { version: 1 },
  'drafts.reject': { version: 1 },
  'drafts.create': { subject: 'x' },
  'drafts.update': { subject: 'x' },
  'inboxes.create': {},
  'inboxes.pause': { reason: 'x' },
  'inboxes.update': { display_name: 'x' },
  'lists.add': { entry: 'blocked.example' },
  'messages.addLabels': { labels: ['x'] },
  'messages.changeLabels': { ids: ['msg_none'], add: ['x'] },
  'messages.forward': { to: [{ email: 'someone@example.test' }] },
  'messages.removeLabels': { labels: ['x'] },
  'messages.reply': { text_body: 'x' },
  'messages.sendBatch': { messages: [{ to: [{ email: 'someone@example.test' }] }] },
  'messages.send': { to: [{ email: 'someone@example.test' }] },
  'retention.postpone': { days: 1 },
  'retention.set': { retention_days: 30 },
  'sso.create': {
    type: 'oidc',
    name: 'x',
    domains: ['example.com'],
    issuer: 'https://login.example.test',
    client_id: 'x',
    client_secret: 'x',
  },
  'sso.createSetupLink': {},
  'sso.update': { name: 'x' },
  'suppressions.create': { email: 'suppressed@example.test' },
  'upgradeRequests.create': { tier: 'business', note: 'x' },
  'usage.setLimits': { counters: {} },
  'webhookEndpoints.create': { url: 'https://receiver.example.test/', events: ['message.sent'] },
  'webhookEndpoints.replay': { since: '2026-01-01T00:00:00.000Z' },
  'webhookEndpoints.update': { description: 'x' },
};
