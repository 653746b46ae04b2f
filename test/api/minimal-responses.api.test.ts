import { beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { installMinimalResponses } from '../../api/plugins/minimal-responses.ts';
import type { PERMISSIONS, Permission } from '../../domain/identity/permissions.ts';
import { ROLE_PERMISSIONS } from '../../domain/identity/roles.ts';
import type { Operation } from '../support/contract.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { buildRequest, type ResourceIds } from '../support/operations.ts';
import { createKey } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { createResources, readResourceIds } from '../support/resource-ids.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { addInternalRows, asSchemaOwner, createRichOrganization } from '../support/rich-organization.ts';
import { useResource } from '../support/use-resource.ts';

const objects = useObjectStorage();
const dns = useResource(startDnsServer, (server) => server.stop());
const app = useTestApp(() => ({
  config: { ...objects.environment, DNS_SERVERS: dns.address, DNS_TIMEOUT_MS: '100' },
}));

let organizationId: string;
let environmentId: string;
let token: string;
beforeAll(async () => {
  ({ organizationId } = await createRichOrganization(createMemoryStorage(new Map())));
  await addInternalRows(organizationId);
  environmentId = await asSchemaOwner(async (client) => {
    const { rows } = await client.query(
      `select id from environments where org_id = $1 and kind = 'production'`,
      [organizationId],
    );
    return rows[0].id;
  });
  ({ token } = await createKey(app.worker, { organizationId }));
});

const keyWith = async (...permissions: (typeof PERMISSIONS)[number][]) =>
  (await createKey(app.worker, { organizationId, permissions })).token;

/** Changes that return a resource. */
const changes = () =>
  app.contract.operations.filter(
    (operation) =>
      operation.method !== 'GET' &&
      operation['x-permission'] !== undefined &&
      Object.entries(operation.responses).some(([status, { content }]) => status.startsWith('2') && content),
  );

/** Changes that return nothing beyond what the permission to change already allows to read. */
const READ_BY_WRITERS: Record<string, string> = {
  'sso.create': 'sso:manage also reads configurations',
  'sso.update': 'sso:manage also reads configurations',
  'sso.activate': 'sso:manage also reads configurations',
  'sso.refresh': 'sso:manage also reads configurations',
  'sso.createSetupLink': 'the response is the new link',
  'upgradeRequests.create': 'who may request another tier reads the requests',
  'sso.test': 'the response is where the test goes on',
  'policies.update': 'who sets the policies may read them',
  'policies.preview': 'the operation requires members:read, too',
  'apiKeys.create': 'keys:manage also reads keys',
  'apiKeys.update': 'keys:manage also reads keys',
  'apiKeys.rotate': 'keys:manage also reads keys',
  'exports.remove': 'export:create also reads exports',
  'exportsUnversioned.remove': 'export:create also reads exports',
  'inboxes.rotateCredentials': 'the response is the new credential',
  'organization.delete': 'the response has only the dates of the closing',
  'billing.checkout': 'the response is where to pay',
  'billing.portal': 'the response is where the portal is',
  'billing.changePlan': 'billing:manage also reads the subscription',
  'billing.cancel': 'billing:manage also reads the subscription',
  'billingUnversioned.checkout': 'the response is where to pay',
  'billingUnversioned.portal': 'the response is where the portal is',
  'billingUnversioned.changePlan': 'billing:manage also reads the subscription',
  'billingUnversioned.cancel': 'billing:manage also reads the subscription',
  'messages.changeLabels': 'the response has the ids of the request and errors, and no content',
  'messages.sendBatch': 'the response has new ids and errors, and no content',
  'attachments.upload': 'the response describes the bytes of the request',
};

describe('the permission to read the response of a change', () => {
  test('is named by every change that returns a resource', () => {
    expect(changes().length).toBeGreaterThan(35);
    for (const operation of changes())
      expect({ id: operation.operationId, permission: operation['x-read-permission'] }).toEqual({
        id: operation.operationId,
        permission: expect.stringMatching(/:/),
      });
  });

  test('is that of the GET operation of the resource', () => {
    const reads = new Map(
      app.contract.operations
        .filter(({ method }) => method === 'GET')
        .map((operation) => [operation.path, operation['x-permission']]),
    );
    let compared = 0;
    for (const operation of changes()) {
      const read = reads.get(operation.path);
      if (!read || operation.operationId in READ_BY_WRITERS) continue;
      compared += 1;
      expect({ id: operation.operationId, permission: operation['x-read-permission'] }).toEqual({
        id: operation.operationId,
        permission: read,
      });
    }
    expect(compared).toBeGreaterThan(10);
  });

  test('differs from the permission to change, with documented exceptions', () => {
    const same = changes().filter(
      (operation) => operation['x-permission'] === operation['x-read-permission'],
    );
    expect(same.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(READ_BY_WRITERS).sort());
  });

  test('is required at startup', async () => {
    const server = Fastify();
    installMinimalResponses(server);
    server.patch(
      '/forgotten',
      { config: { permission: 'drafts:write' }, schema: { response: { 200: { type: 'object' } } } },
      async () => ({}),
    );
    await expect(server.ready()).rejects.toThrow('PATCH /forgotten');
  });
});

/** The fields of the minimal response of an operation, from the OpenAPI document. */
function minimalFields({ operationId, responses }: Operation): string[] {
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const { schemas } = app.contract.description.components;
  const body = success?.content?.['application/json']?.schema as { $ref?: string } | undefined;
  const union = schemas[body?.$ref?.split('/').at(-1) ?? ''] as
    | { anyOf?: { $ref: string }[]; oneOf?: { $ref: string }[] }
    | undefined;
  const names = (union?.oneOf ?? union?.anyOf ?? []).map(({ $ref }) => $ref.split('/').at(-1));
  const name = names.find((each) => each?.startsWith('Minimal'));
  if (!name) throw new Error(`${operationId} documents no minimal response`);
  const minimal = schemas[name] as { properties: object };
  return Object.keys(minimal.properties).sort();
}

/** Changes that need more than their permission: a key gives no role that may do more than the key. */
const ALSO_NEEDED: Record<string, readonly Permission[]> = {
  'members.update': ROLE_PERMISSIONS.viewer,
  'invitations.create': ROLE_PERMISSIONS.viewer,
};

/** Replies and forwards quote the original, so they require both permissions. */
const NEED_BOTH = ['messages.reply', 'messages.forward'];
/** Only people decide, whose roles include reading. */
const FOR_PEOPLE = ['drafts.approve', 'drafts.reject', 'messages.dismissInjection'];

test('a key that may change but not read gets the minimal response, also of a replayed response', async () => {
  const existing = await readResourceIds(organizationId, environmentId);
  let checked = 0;
  for (const operation of changes()) {
    const { 'x-permission': permission, 'x-read-permission': read, operationId } = operation;
    if (!permission || !read || permission === read) continue;
    const writer = await keyWith(permission, ...(ALSO_NEEDED[operationId] ?? []));
    const ids: ResourceIds = { ...existing, ...(await createResources(app, token)) };
    const { path, call } = buildRequest(operation, ids);
    const headers: Record<string, string> = {
      ...call.headers,
      ...(call.method === 'POST' ? { 'idempotency-key': operationId } : {}),
    };
    const response = await app.call(path, { ...call, token: writer, headers });
    if ([...NEED_BOTH, ...FOR_PEOPLE].includes(operationId)) {
      expectProblem(response, 'permission_denied');
      continue;
    }
    if (response.statusCode >= 300) throw new Error(`${operationId}: ${response.body}`);
    expect({ operationId, fields: Object.keys(response.json()).sort() }).toEqual({
      operationId,
      fields: minimalFields(operation),
    });
    checked += 1;
    if (call.method !== 'POST') continue;
    const replayed = await app.call(path, { ...call, token: writer, headers });
    expect(replayed.headers['idempotent-replayed']).toBe('true');
    expect(replayed.json()).toEqual(response.json());
  }
  expect(checked).toBeGreaterThan(30);
});

test('a key that loses the permission to read gets only the minimal response when it repeats a request', async () => {
  const { token: changing, keyId } = await createKey(app.worker, { organizationId });
  const { inbox } = await createResources(app, token);
  const call = {
    method: 'POST' as const,
    token: changing,
    body: { to: [{ email: 'ada@people.example' }], subject: 'Secret' },
    headers: { 'idempotency-key': 'k1' },
  };
  expect((await app.call(`/inboxes/${inbox}/messages`, call)).json()).toMatchObject({ subject: 'Secret' });
  await asSchemaOwner((client) =>
    client.query(`update api_keys set permissions = '{messages:send}' where id = $1`, [keyId]),
  );
  const replayed = await app.call(`/inboxes/${inbox}/messages`, call);
  expect(replayed.headers['idempotent-replayed']).toBe('true');
  expect(Object.keys(replayed.json()).sort()).toEqual([
    'env_id',
    'id',
    'inbox_id',
    'object',
    'status',
    'thread_id',
  ]);
});

test('the refusal of a draft does not name its recipients to a key that may not read drafts', async () => {
  const { inbox } = await createResources(app, token);
  const email = 'secret-recipient@people.example';
  await app.call('/suppressions', { method: 'POST', token, body: { email } });
  const { id } = (
    await app.call(`/inboxes/${inbox}/drafts`, { method: 'POST', token, body: { to: [{ email }] } })
  ).json();
  const send = (sender: string) => app.call(`/drafts/${id}/send`, { method: 'POST', token: sender });
  const refused = await send(await keyWith('messages:send'));
  expect(expectProblem(refused, 'message_rejected')).toMatchObject({ rejection_reason: 'blocked_recipient' });
  expect(refused.body).not.toContain('secret-recipient');
  expect((await send(token)).body).toContain('secret-recipient');
});
