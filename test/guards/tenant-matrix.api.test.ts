import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { COMMAND_LINE_CLIENT_ID } from '../../domain/connections/command-line-client.ts';
import { CONNECTION_PERMISSIONS, KEY_PERMISSIONS, PERMISSIONS } from '../../domain/identity/permissions.ts';
import { MEMBER_ROLES, type MemberRole, ROLE_PERMISSIONS } from '../../domain/identity/roles.ts';
import { IMPERSONATION_PERMISSIONS } from '../../domain/impersonation/impersonation-access.ts';
import { newId } from '../../platform/ids.ts';
import {
  type Caller,
  callAs,
  digestRows,
  isStream,
  listProbes,
  markEnvironment,
  type Probe,
  probeAll,
  type Victim,
} from '../support/access-matrix.ts';
import { billingConfig } from '../support/billing-config.ts';

import { createConnection } from '../support/connections.ts';
import { impersonate } from '../support/impersonation.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { buildRequest, findIdPositions, RESOURCES, type ResourceIds } from '../support/operations.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { createResources, readResourceIds } from '../support/resource-ids.ts';
import { useTestApp } from '../support/resources.ts';
import { addInternalRows, asSchemaOwner, createRichOrganization } from '../support/rich-organization.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import type { Call } from '../support/test-app.ts';

// Each request comes from an address of its own, because requests that find no environment are limited by address.
const app = useTestApp({ config: { ...billingConfig(), TRUST_PROXY: '127.0.0.1' } });

interface RichWorld {
  organizationId: string;
  marker: string;
  environments: { production: string; sandbox: string };
}

async function createRichWorld(): Promise<RichWorld> {
  const { organizationId, marker } = await createRichOrganization(createMemoryStorage(new Map()));
  await addInternalRows(organizationId);
  const environments = await asSchemaOwner(async (client) => {
    const { rows } = await client.query<{ kind: string; id: string }>(
      'select kind, id from environments where org_id = $1',
      [organizationId],
    );
    return Object.fromEntries(rows.map(({ kind, id }) => [kind, id])) as RichWorld['environments'];
  });
  return { organizationId, marker, environments };
}

type Case = { caller: Caller; victim: Victim };

/** A key of an organization, and what it may use. */
async function createCaller(
  name: string,
  organizationId: string,
  binding: { environmentId?: string; inboxId?: string } = {},
): Promise<Caller> {
  const { token } = await createKey(app.worker, { organizationId, ...binding });
  const resources = await createResources(app, token, binding.inboxId ? { inboxId: binding.inboxId } : {});
  const permissions = new Set(KEY_PERMISSIONS);
  return { name, token, permissions, own: { organization: organizationId, ...resources } };
}

/** The session of a person with a role. Resources of its own are created by a key, because viewers create none. */
async function createMember(role: MemberRole, organizationId: string): Promise<Caller> {
  const { token: key } = await createKey(app.worker, { organizationId });
  const userId = await createTestUser(app.worker, { organizationId, role });
  const { token } = await createTestSession(app.worker, userId, { factors: ['totp'] });
  const resources = await createResources(app, key);
  return {
    name: `the session of a member with the role ${role}`,
    token,
    permissions: new Set(ROLE_PERMISSIONS[role]),
    own: { organization: organizationId, ...resources },
  };
}

/**
 * A connection of an MCP host, for the tools of `/mcp`, or one of the CLI, which calls the operations themselves. Resources
 * of its own are created by a key.
 */
async function createConnected(
  name: string,
  organizationId: string,
  { clientId, ...binding }: { environmentId?: string; inboxId?: string; clientId?: string } = {},
): Promise<Caller> {
  const { own } = await createCaller(name, organizationId, binding);
  const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
  const { token } = await createConnection(app.worker, {
    organizationId,
    userId,
    ...binding,
    ...(clientId === undefined ? {} : { clientId }),
  });
  const caller = { name, token, permissions: new Set(CONNECTION_PERMISSIONS), own };
  return clientId === undefined ? { ...caller, callsTools: true } : caller;
}

/** Staff in a support session with writing. Resources of its own are created by a key: some are forbidden to staff. */
async function createSupportStaff(organizationId: string): Promise<Caller> {
  const { token: key } = await createKey(app.worker, { organizationId });
  const { token } = await impersonate(app, organizationId, { write: true });
  return {
    name: 'an impersonation in another organization',
    token,
    permissions: new Set(IMPERSONATION_PERMISSIONS),
    isRefused: (operation) => operation['x-impersonation'] === 'never',
    own: { organization: organizationId, ...(await createResources(app, key)) },
  };
}

/** Keys, members, support staff and a connection of one organization, and all of another. */
async function outsiders(): Promise<Case[]> {
  const [world, outside] = await Promise.all([createRichWorld(), createRichWorld()]);
  const { organizationId, environments } = outside;
  const inbox = await createInbox(app.worker, {
    organizationId,
    productionEnvironmentId: environments.production,
  });
  const victim = {
    organizationId: world.organizationId,
    ids: await readResourceIds(world.organizationId, world.environments.production),
    markers: [world.marker],
  };
  const bindings: [string, object][] = [
    ['an organization-wide key', {}],
    ['a key of an environment', { environmentId: environments.production }],
    ['a key of an inbox', { environmentId: environments.production, inboxId: inbox.id }],
  ];
  const callers = await Promise.all([
    ...bindings.map(([name, binding]) =>
      createCaller(`${name} of another organization`, organizationId, binding),
    ),
    ...MEMBER_ROLES.map((role) => createMember(role, organizationId)),
    createSupportStaff(organizationId),
    createConnected('a connection of another organization', organizationId),
    createConnected('a connection of the CLI of another organization', organizationId, {
      clientId: COMMAND_LINE_CLIENT_ID,
    }),
  ]);
  return callers.map((caller) => ({ caller, victim }));
}

/** Bound keys and a bound connection, and the rest of their own organization. */
async function insiders(): Promise<Case[]> {
  const { organizationId, environments } = await createRichWorld();
  const { production, sandbox } = environments;
  // Read before the callers have rows of their own.
  const [inProduction, inSandbox] = (await Promise.all(
    [production, sandbox].map((environmentId) => readResourceIds(organizationId, environmentId)),
  )) as [ResourceIds, ResourceIds];
  const markers = { production: newMarker(), sandbox: newMarker() };
  await markEnvironment(production, markers.production);
  await markEnvironment(sandbox, markers.sandbox);
  const inbox = await createInbox(app.worker, { organizationId, productionEnvironmentId: production });
  // What belongs to the organization is not foreign to its keys.
  const { domain, export: exportId } = inProduction;
  const createInsider = async (name: string, binding: { environmentId: string; inboxId?: string }) => {
    const caller = await createCaller(name, organizationId, binding);
    return { ...caller, own: { domain, export: exportId, ...caller.own } };
  };
  const ofSandbox = await createInsider('a key of another environment', { environmentId: sandbox });
  const ofInbox = await createInsider('a key of another inbox', {
    environmentId: production,
    inboxId: inbox.id,
  });
  const connected = await createConnected('a connection of another inbox', organizationId, {
    environmentId: production,
    inboxId: inbox.id,
  });
  const commandLine = await createConnected('a connection of the CLI of another inbox', organizationId, {
    environmentId: production,
    inboxId: inbox.id,
    clientId: COMMAND_LINE_CLIENT_ID,
  });
  const victimOf = (ids: ResourceIds, environmentId: string, marker: string): Victim => {
    const { organization: _own, domain: _domain, export: _export, ...foreign } = ids;
    const place = { environmentId, exceptInboxId: inbox.id };
    return { organizationId, place, includesCaller: true, ids: foreign, markers: [marker] };
  };
  const victimInProduction = victimOf(inProduction, production, markers.production);
  const { environment: _environment, ...besideInbox } = victimInProduction.ids;
  return [
    { caller: ofSandbox, victim: victimInProduction },
    { caller: ofInbox, victim: { ...victimInProduction, ids: besideInbox } },
    ...[connected, commandLine].map((caller) => ({
      caller: { ...caller, own: { domain, export: exportId, ...caller.own } },
      victim: { ...victimInProduction, ids: besideInbox },
    })),
    {
      caller: {
        ...ofInbox,
        name: 'a key of an inbox in another environment',
        own: { ...inProduction, ...ofInbox.own },
      },
      victim: victimOf(inSandbox, sandbox, markers.sandbox),
    },
  ];
}

const newMarker = () => `secret${randomBytes(8).toString('hex')}`;

/** Drafts take any target: it is looked up when the draft is sent. */
const CHECKED_WHEN_SENT = /^drafts\.(create|update) body (thread_id|in_reply_to)$/;

/** A bound key may not export anything and manages neither members nor SSO, so it gets 403 before the row is looked up. */
const REFUSED_TO_BOUND_KEYS =
  /^(exports(Unversioned)?\.\w+ path export_id|members\.\w+ path userId|invitations\.\w+ path id|sso\.\w+ path (configurationId|setupLinkId)|organization\.\w+Environment path id)$/;

function findViolation(
  { name, position, operation, id }: Probe,
  { status, body, caller, victim }: { status: number; body: string; caller: Caller; victim: Victim },
): string | undefined {
  // An error may repeat the id that the caller sent.
  const repeated = id === '' ? body : body.replaceAll(id, '');
  // So does the list of the caller's own calls, in their paths.
  const shown =
    operation.operationId === 'requests.list' ? repeated.replace(/"path":"[^"]*"/g, '') : repeated;
  if (victim.markers.some((text) => shown.includes(text))) return "shows the victim's data:";
  const permission = operation['x-permission'];
  const isPermitted =
    operation['x-credential'] !== undefined ||
    (permission !== undefined && caller.permissions.has(permission) && !caller.isRefused?.(operation));
  if (CHECKED_WHEN_SENT.test(name) && isPermitted)
    return status < 300 ? undefined : 'is not the answer of a draft:';
  // Every key of an organization sees its list entries, and in its usage events which key set a limit.
  const { listEntry, apiKey, ...ids } = victim.ids;
  const hidden = [...Object.values(ids), ...(victim.includesCaller ? [] : [listEntry, apiKey])];
  if (hidden.some((text) => text !== undefined && shown.includes(text))) return "shows the victim's ids:";
  if (position === 'none') return status < 500 ? undefined : 'failed:';
  // An organization or environment that is not found is a 404, whatever the permissions.
  if (!isPermitted && position !== 'x-env-id' && position !== 'x-org-id')
    return status === 403 ? undefined : 'is not 403:';
  if (REFUSED_TO_BOUND_KEYS.test(name)) return status === 403 || status === 404 ? undefined : 'is not 403:';
  if (position === 'x-env-id' || position === 'x-org-id' || position.where === 'path')
    return status === 404 ? undefined : 'is not 404:';
  // A call about many messages answers for each of them.
  if (/^messages\.(?:changeLabels|sendBatch)$/.test(operation.operationId) && status === 200) {
    const { data } = JSON.parse(body) as { data: { error: { code: string } | null }[] };
    return data.every(({ error }) => error?.code === 'not_found') ? undefined : 'finds it:';
  }
  // A filter by a foreign id finds nothing.
  if (position.where === 'query' && operation.method === 'GET' && status === 200) return undefined;
  return [403, 404, 422].includes(status) ? undefined : 'is neither 403, 404 nor 422:';
}

describe('foreign ids', () => {
  test('are known for every parameter of every operation', () => {
    const { operations, description } = app.contract;
    const found = operations
      .filter((operation) => operation['x-permission'] !== undefined)
      .flatMap((operation) => findIdPositions(operation, description.components.schemas))
      .map(({ resource }) => resource);
    expect([...new Set(found)].sort()).toEqual([...RESOURCES].sort());
  });

  test.each([
    ['of another organization', outsiders, 10, 150],
    ['of another environment or inbox', insiders, 5, 60],
  ])(
    '%s reach, change and show nothing',
    async (_whose, arrange, callers, minProbes) => {
      const cases = await arrange();
      expect(cases).toHaveLength(callers);
      // Reads of all callers come first, because drafts keep the foreign ids that a caller writes into them.
      for (const isRead of [true, false])
        for (const { caller, victim } of cases) {
          const all = listProbes(app.contract, caller, victim);
          expect(all.length).toBeGreaterThan(minProbes);
          const probes = all.filter(({ position }) => (position === 'none') === isRead);
          expect(probes.length).toBeGreaterThan(20);
          const before = await digestRows(victim);
          const violations = await probeAll(app, probes, (probe: Probe, status: number, body: string) =>
            findViolation(probe, { status, body, caller, victim }),
          );
          expect({ caller: caller.name, violations }).toEqual({ caller: caller.name, violations: [] });
          expect({ caller: caller.name, rows: await digestRows(victim) }).toEqual({
            caller: caller.name,
            rows: before,
          });
        }
    },
    300_000,
  );

  test('as the target of a draft are found neither when it is sent', async () => {
    const isWriter = ({ caller }: Case) => caller.permissions.has('messages:send');
    for (const { caller, victim } of [...(await outsiders()), ...(await insiders())].filter(isWriter))
      for (const target of [{ thread_id: victim.ids.thread }, { in_reply_to: victim.ids.message }]) {
        const path = `/inboxes/${caller.own.inbox}/drafts`;
        const body = { to: [{ email: 'ada@people.example' }], ...target };
        const { token, callsTools } = caller;
        const call: Call = { method: 'POST', token, body };
        const draft = await callAs(app, { path, call, callsTools });
        const sending = {
          path: `/drafts/${draft.json().id}/send`,
          call: { ...call, body: undefined },
          callsTools,
        };
        const sent = await callAs(app, sending);
        expect(sent.json()).toMatchObject({ code: 'draft_target_not_found' });
      }
  });
});

test('a key that lacks the permission of an operation gets 403 and changes nothing', async () => {
  const { organizationId, environments, marker } = await createRichWorld();
  const victim: Victim = {
    organizationId,
    ids: await readResourceIds(organizationId, environments.production),
    markers: [marker],
    includesCaller: true,
  };
  const tokens = new Map<string, string>();
  for (const permission of PERMISSIONS) {
    const permissions = PERMISSIONS.filter((name) => name !== permission);
    tokens.set(permission, (await createKey(app.worker, { organizationId, permissions })).token);
  }
  const probes = app.contract.operations.flatMap((operation): Probe[] => {
    const permission = operation['x-permission'];
    if (permission === undefined) return [];
    const { path, call } = buildRequest(operation, victim.ids);
    const token = tokens.get(permission) ?? '';
    return [
      {
        name: operation.operationId,
        position: 'x-env-id',
        id: '',
        operation,
        path,
        call: { ...call, token },
      },
    ];
  });
  const before = await digestRows(victim);
  const violations = await probeAll(app, probes, (_probe, status, body) => {
    if (body.includes(marker)) return "shows the organization's data:";
    return status === 403 ? undefined : 'is not 403:';
  });
  expect(violations).toEqual([]);
  expect(await digestRows(victim)).toEqual(before);
}, 120_000);

/** Requests of every operation, with ids of nothing. */
function listRequests(organizationId: string, token: string): Probe[] {
  const unknown = Object.fromEntries(RESOURCES.map((resource) => [resource, newId('message')]));
  const ids: ResourceIds = { ...unknown, organization: organizationId };
  return app.contract.operations
    .filter((operation) => operation['x-permission'] !== undefined && !isStream(operation))
    .map((operation) => {
      const { path, call } = buildRequest(operation, ids);
      return {
        name: operation.operationId,
        position: 'none',
        id: '',
        operation,
        path,
        call: { ...call, token },
      };
    });
}

describe('the role of a member', () => {
  test.each(MEMBER_ROLES)('%s allows the operations of its permissions, and no others', async (role) => {
    const { organizationId } = await createOrganization(app.worker);
    const userId = await createTestUser(app.worker, { organizationId, role });
    const { token } = await createTestSession(app.worker, userId, { factors: ['totp'] });
    const requests = listRequests(organizationId, token);
    const victim: Victim = { organizationId, ids: {}, markers: [], includesCaller: true };
    const before = await digestRows(victim);
    const violations = await probeAll(app, requests, ({ operation }, status, body) => {
      const permission = operation['x-permission'] ?? '';
      const isRefused = status === 403 && JSON.parse(body).permission === permission;
      const isAllowed = ROLE_PERMISSIONS[role].some((name) => name === permission);
      if (isAllowed) return isRefused ? 'is refused, although the role has the permission:' : undefined;
      return isRefused ? undefined : 'is not refused, although the role lacks the permission:';
    });
    expect(violations).toEqual([]);
    // A viewer's requests are all reads or refused.
    if (role === 'viewer') expect(await digestRows(victim)).toEqual(before);
    else expect(await digestRows(victim)).not.toEqual(before);
  });

  test('ends with the membership: session and keys of a removed member reach and change nothing', async () => {
    const { organizationId, ownerId } = await createOrganization(app.worker);
    const { token: owner } = await createTestSession(app.worker, ownerId, { factors: ['totp'] });
    const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
    const { token: session } = await createTestSession(app.worker, userId, { factors: ['totp'] });
    const body = { name: 'Bot', permissions: ['keys:manage', 'inboxes:write', 'inboxes:read'] };
    const { token: key } = (await app.call('/api-keys', { method: 'POST', token: session, body })).json();
    await app.call(`/org/members/${userId}`, { method: 'DELETE', token: owner });
    const victim: Victim = { organizationId, ids: {}, markers: [], includesCaller: true };
    const before = await digestRows(victim);
    const requests = [
      ...listRequests(organizationId, session),
      ...listRequests(organizationId, session).map((probe) => {
        const headers = { ...probe.call.headers, 'x-org-id': organizationId };
        return { ...probe, position: 'x-org-id' as const, call: { ...probe.call, headers } };
      }),
      ...listRequests(organizationId, key),
    ];
    const violations = await probeAll(app, requests, ({ position, call }, status) => {
      const expected = call.token === key ? 401 : position === 'x-org-id' ? 404 : 403;
      return status === expected ? undefined : `is not ${expected}:`;
    });
    expect(violations).toEqual([]);
    expect(await digestRows(victim)).toEqual(before);
  });
});
