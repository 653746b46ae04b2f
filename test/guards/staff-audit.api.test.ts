import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { NOTE_PATTERN } from '../../api/admin/note.ts';
import type { Operation } from '../support/contract.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createStaff, type TestStaff } from '../support/staff.ts';
import { createFailedEmail, createTestEndpoint } from '../support/staff-operations.ts';
import type { Call } from '../support/test-app.ts';
import { listSourceFiles } from './import-graph.ts';

const PAUSED = { id: 'reconcile', isPaused: true, note: null, lastRunAt: null, nextRunAt: null };
const app = useTestApp({ schedules: { list: async () => [PAUSED], find: async () => PAUSED } });
let staff: TestStaff;
beforeAll(async () => {
  staff = await createStaff(app);
});

/** The reason in every request, which both logs must have. */
const note = 'Ticket 4711';

/** Changes that this test does not make, and where their entries are tested. */
const TESTED_ELSEWHERE: [RegExp, string][] = [
  [/^workflows\./, 'act on runs of Temporal: test/admin/workflows.api.test.ts'],
  [/^impersonations\./, 'their reason is a field of its own: test/admin/impersonation.api.test.ts'],
  [/^adminUsers\.resetMfa$/, 'needs factors: test/admin/people.api.test.ts'],
  [/^adminOrganizations\.extendGrace$/, 'needs billing: test/billing/page.api.test.ts'],
];

interface World extends TestOrganization {
  inboxId: string;
}

interface Attempt {
  /** Below /api/v1. */
  path: string;
  body?: unknown;
  /** The change concerns no organization, whose log would have an entry. */
  isGlobal?: boolean;
}

const call = async (method: NonNullable<Call['method']>, path: string, body: unknown) => {
  const response = await app.call(path, { method, token: staff.token, body });
  expect(response.statusCode).toBeLessThan(300);
  return response;
};
const suspended = { reason: 'policy', note };
const suspension = (pathOf: (world: World) => string) => ({
  suspend: async (world: World) => ({ path: `${pathOf(world)}/suspend`, body: suspended }),
  reinstate: async (world: World) => {
    await call('POST', `${pathOf(world)}/suspend`, suspended);
    return { path: `${pathOf(world)}/reinstate`, body: suspended };
  },
});
const orgPath = ({ organizationId }: World) => `/admin/orgs/${organizationId}`;
const ofOrganization = suspension(orgPath);
const ofEnvironment = suspension((world) => `${orgPath(world)}/environments/${world.sandboxEnvironmentId}`);
const ofInbox = suspension((world) => `${orgPath(world)}/inboxes/${world.inboxId}`);
const bulkItems = ({ inboxId }: World) => ({ ...suspended, items: [{ type: 'inbox', id: inboxId }] });
const endpointPath = async (world: World) =>
  `${orgPath(world)}/webhook-endpoints/${await createTestEndpoint(app, world.token)}`;
const decision = (action: string) => async (world: World) => {
  const { organizationId } = world;
  const [request] = await query<{ id: string }>(
    app.worker,
    sql`select id from upgrade_requests where org_id = ${organizationId} and status = 'open'`,
  );
  return { path: `/admin/upgrade-requests/${request?.id}/${action}`, body: { note } };
};

/** A request of every change under `/admin` that succeeds and changes something. A new operation must be added here. */
const ATTEMPTS: Record<string, (world: World) => Promise<Attempt>> = {
  'adminOrganizations.suspend': ofOrganization.suspend,
  'adminOrganizations.reinstate': ofOrganization.reinstate,
  'adminEnvironments.suspend': ofEnvironment.suspend,
  'adminEnvironments.reinstate': ofEnvironment.reinstate,
  'adminInboxes.suspend': ofInbox.suspend,
  'adminInboxes.reinstate': ofInbox.reinstate,
  'adminBulk.suspend': async (world) => ({ path: '/admin/bulk/suspend', body: bulkItems(world) }),
  'adminBulk.reinstate': async (world) => {
    await call('POST', '/admin/bulk/suspend', bulkItems(world));
    return { path: '/admin/bulk/reinstate', body: bulkItems(world) };
  },
  'adminOrganizations.changeTier': async (world) => ({
    path: `${orgPath(world)}/tier`,
    body: { tier: 'developer', note },
  }),
  'adminOrganizations.setLimitOverride': async (world) => ({
    path: `${orgPath(world)}/limit-override`,
    body: { counter: 'inboxes', limit: 1, note },
  }),
  'adminOrganizations.removeLimitOverride': async (world) => {
    await call('POST', `${orgPath(world)}/limit-override`, { counter: 'inboxes', limit: 1, note });
    return { path: `${orgPath(world)}/limit-override/inboxes?note=${encodeURIComponent(note)}` };
  },
  'adminOrganizations.reassignOwner': async (world) => {
    const userId = await createTestUser(app.worker);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${world.organizationId}, ${userId}, 'admin', now()) returning org_id`,
    );
    return { path: `${orgPath(world)}/reassign-owner`, body: { user_id: userId, note } };
  },
  'adminUpgradeRequests.approve': decision('approve'),
  'adminUpgradeRequests.reject': decision('reject'),
  'adminUsers.suspend': async ({ ownerId }) => ({ path: `/admin/users/${ownerId}/suspend`, body: { note } }),
  'adminUsers.reinstate': async ({ ownerId }) => {
    await call('POST', `/admin/users/${ownerId}/suspend`, { note });
    return { path: `/admin/users/${ownerId}/reinstate`, body: { note } };
  },
  'adminUsers.revokeSessions': async ({ ownerId }) => ({
    path: `/admin/users/${ownerId}/revoke-sessions`,
    body: { note },
  }),
  'adminKeys.revoke': async ({ keyId }) => ({ path: `/admin/keys/${keyId}/revoke`, body: { note } }),
  'staff.add': async ({ ownerId }) => ({
    path: '/admin/staff',
    body: { email: `${ownerId}@example.test`, role: 'support', note },
    isGlobal: true,
  }),
  'staff.changeRole': async () => {
    const { userId } = await createStaff(app, { role: 'support' });
    return { path: `/admin/staff/${userId}`, body: { role: 'admin', note }, isGlobal: true };
  },
  'adminNotifications.create': async () => ({
    path: '/admin/notifications',
    body: { title: 'Maintenance', text: 'On Sunday.', audience: 'owners', delivery: 'shown', note },
    isGlobal: true,
  }),
  'adminNotifications.withdraw': async () => {
    const body = { title: 'Maintenance', text: 'On Sunday.', audience: 'owners', delivery: 'shown', note };
    const { id } = (await call('POST', '/admin/notifications', body)).json();
    return { path: `/admin/notifications/${id}?note=${encodeURIComponent(note)}`, isGlobal: true };
  },
  'staff.remove': async () => {
    const { userId } = await createStaff(app, { role: 'support' });
    return { path: `/admin/staff/${userId}?note=${encodeURIComponent(note)}`, isGlobal: true };
  },
  'adminOrganizations.postponeRetention': async (world) => {
    await query(
      app.worker,
      sql`insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
      values (${world.organizationId}, 30, 30, now(), '[]', now(), now()) returning org_id`,
    );
    return { path: `${orgPath(world)}/retention-policy/postpone`, body: { days: 7, note } };
  },
  'adminWebhookEndpoints.replay': async (world) => ({
    path: `${await endpointPath(world)}/replay`,
    body: { since: '2026-01-01T00:00:00Z', note },
  }),
  'adminWebhookEndpoints.cancelPending': async (world) => ({
    path: `${await endpointPath(world)}/cancel-pending`,
    body: { note },
  }),
  'systemEmails.retry': async (world) => ({
    path: '/admin/system-emails/retry',
    body: { ids: [await createFailedEmail(app.worker, world)], note },
  }),
  'outbox.retry': async ({ organizationId }) => {
    const [command] = await query<{ id: string }>(
      app.worker,
      sql`insert into outbox (org_id, command, priority, available_at, created_at, dead_at)
      values (${organizationId}, '{}', 3, now(), now(), now()) returning id::text as id`,
    );
    return { path: '/admin/outbox/retry', body: { id: command?.id, note } };
  },
  'schedules.unpause': async () => ({
    path: '/admin/schedules/reconcile/unpause',
    body: { note },
    isGlobal: true,
  }),
  'toggles.set': async () => ({
    path: '/admin/toggles/sign_up',
    body: { enabled: true, note },
    isGlobal: true,
  }),
};

async function createWorld(): Promise<World> {
  const organization = await createOrganization(app.worker);
  const { organizationId } = organization;
  await query(
    app.worker,
    sql`update organizations set tier = 'free' where id = ${organizationId} returning id`,
  );
  const { id: inboxId } = await createInbox(app.worker, organization);
  const { token } = await createTestSession(app.worker, organization.ownerId);
  const body = { tier: 'business', note: 'x' };
  await app.call('/org/upgrade-requests', { method: 'POST', token, body });
  return { ...organization, inboxId };
}

interface Entry {
  reason: string | null;
  actorId: string;
  sessionId: string;
}

const changes = (): Operation[] =>
  app.contract.operations.filter(
    (operation) =>
      operation['x-staff-role'] !== undefined &&
      operation.method !== 'GET' &&
      !TESTED_ELSEWHERE.some(([pattern]) => pattern.test(operation.operationId)),
  );

async function findProblems({ operationId, method }: Operation): Promise<string[]> {
  const attempt = ATTEMPTS[operationId];
  if (!attempt) return [`${operationId} is not in ATTEMPTS`];
  const world = await createWorld();
  const { path, body, isGlobal = false } = await attempt(world);
  const response = await app.call(path, {
    method: method as Call['method'] & string,
    token: staff.token,
    body,
  });
  if (response.statusCode >= 300) return [`${operationId} failed: ${response.body}`];
  const requestId = String(response.headers['x-request-id']);
  const own = await query<Entry>(
    app.worker,
    sql`select reason, staff_id as "actorId", session_id as "sessionId" from staff_audit_entries
    where request_id = ${requestId}`,
  );
  const theirs = await query<Entry>(
    app.worker,
    sql`select reason, actor_id as "actorId", credential_id as "sessionId" from audit_entries
    where request_id = ${requestId} and org_id = ${world.organizationId} and actor_kind = 'staff'`,
  );
  const problems: string[] = [];
  if (own.length === 0) problems.push(`${operationId} wrote no entry (recordStaffAudit)`);
  if (!isGlobal && theirs.length === 0) problems.push(`${operationId} wrote no entry for the organization`);
  for (const { reason, actorId, sessionId } of [...own, ...theirs])
    if (reason !== note || actorId !== staff.userId || sessionId !== staff.sessionId)
      problems.push(`${operationId} does not say who made the change and why`);
  return problems;
}

/** Changes without a reason of their own. */
const WITHOUT_REASON = ['impersonations.end', 'console.endImpersonation', 'pages.endImpersonation'];

test('every change by staff requires a reason in words: by the API', () => {
  const all = app.contract.operations.filter(
    (operation) => operation['x-staff-role'] !== undefined && operation.method !== 'GET',
  );
  const { schemas } = app.contract.description.components;
  const resolve = (schema: FieldSchema | undefined): FieldSchema =>
    (schema?.$ref ? (schemas[schema.$ref.split('/').at(-1) ?? ''] as FieldSchema) : schema) ?? {};
  const fieldsOf = ({ parameters = [], requestBody }: Operation) => {
    const body = resolve(Object.values(requestBody?.content ?? {})[0]?.schema);
    const query = parameters.map(({ name, schema }): [string, FieldSchema] => [name, schema]);
    return { ...Object.fromEntries(query), ...body.properties };
  };
  const lacking = all.filter((operation) => {
    const { note, reason } = fieldsOf(operation);
    return [note, reason].every((field) => field?.pattern !== NOTE_PATTERN);
  });
  expect(all.length).toBeGreaterThan(35);
  expect(lacking.map(({ operationId }) => operationId)).toEqual(['impersonations.end']);
});

test('every change by staff requires a reason in words: by the forms of the console', () => {
  const files = listSourceFiles(['web/staff']);
  const forms = files.flatMap((file) => {
    const source = readFileSync(file, 'utf8');
    const named = [...source.matchAll(/^const (\w+) = strictObject\(\{[^}]*note: Note,[^}]*\}\);/gm)].map(
      ([, name]) => name,
    );
    return source
      .split(/\b(?:app\.post|console\.form)\(/)
      .slice(1)
      .map((route) => ({
        id: /operationId: ['`]([^'`]+)/.exec(route)?.[1] ?? route,
        hasReason: /\bnote: Note\b/.test(route) || named.some((name) => route.includes(`body: ${name}`)),
      }));
  });
  expect(forms.length).toBeGreaterThan(18);
  const lacking = forms.filter(({ hasReason }) => !hasReason).map(({ id }) => id);
  expect(lacking.filter((id) => !WITHOUT_REASON.includes(id))).toEqual([]);
});

interface FieldSchema {
  $ref?: string;
  pattern?: string;
  properties?: Record<string, FieldSchema>;
}

test('every change by staff is in the log of the service and in that of the organization, with its reason', async () => {
  const all = changes();
  expect(all.length).toBeGreaterThanOrEqual(14);
  const problems: string[] = [];
  for (const operation of all) problems.push(...(await findProblems(operation)));
  expect(problems).toEqual([]);
  const known = new Set(all.map(({ operationId }) => operationId));
  expect(Object.keys(ATTEMPTS).filter((operationId) => !known.has(operationId))).toEqual([]);
});
