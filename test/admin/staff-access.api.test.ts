import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { generate } from 'otplib';
import { recordStaffAudit } from '../../domain/staff/record-staff-audit.ts';
import { createAccountQuickly, newNetwork, signIn } from '../support/accounts.ts';
import { createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { addStaffMember, createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const operations = () =>
  app.contract.operations.filter((operation) => operation['x-staff-role'] !== undefined);

/** Sends a request to every operation of staff: access is decided before anything else. Returns those with another status. */
async function findOthers(token: string | undefined, status: number, only = operations()) {
  const others: string[] = [];
  for (const operation of only) {
    const method = operation.method as NonNullable<Call['method']>;
    const path = operation.path.replace(/\{\w+\}/g, 'none');
    const { statusCode } = await app.call(path, {
      prefix: '',
      method,
      // Refused requests count toward the limit of their network.
      headers: newNetwork(),
      ...(token === undefined ? {} : { token }),
    });
    if (statusCode !== status) others.push(`${operation.operationId}: ${statusCode}`);
  }
  return others;
}

/** What `docs/administration.md` gives to support besides reading: stuck work, and support sessions for reading. */
const SUPPORT_CHANGES = [
  'impersonations.end',
  'impersonations.start',
  'outbox.retry',
  'systemEmails.retry',
  'workflows.cancel',
  'workflows.cancelByQuery',
  'workflows.resolve',
  'workflows.resolveByQuery',
  'workflows.retry',
  'workflows.retryByQuery',
];

describe('operations of staff', () => {
  test('refuse every credential that is no session', async () => {
    const { token } = await createOrganization(app.worker);
    expect(operations().length).toBeGreaterThan(0);
    expect(await findOthers(undefined, 401)).toEqual([]);
    expect(await findOthers(token, 401)).toEqual([]);
  });

  test('refuse members of organizations, owners included', async () => {
    const { ownerId } = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, ownerId, { factors: ['totp'] });
    expect(await findOthers(token, 403)).toEqual([]);
  });

  test('of admins refuse support', async () => {
    const { token } = await createStaff(app, { role: 'support' });
    const ofAdmins = operations().filter((operation) => operation['x-staff-role'] === 'admin');
    expect(await findOthers(token, 403, ofAdmins)).toEqual([]);
    expectOk(await app.call('/admin/me', { token }));
  });

  test('of support change only what the documentation gives to the role', () => {
    const changes = operations().filter(
      (operation) => operation['x-staff-role'] === 'support' && operation.method !== 'GET',
    );
    expect(changes.map(({ operationId }) => operationId).sort()).toEqual(SUPPORT_CHANGES);
  });

  const expectOk = ({ statusCode }: { statusCode: number }) => expect(statusCode).toBe(200);
});

test('changes by staff refuse an Idempotency-Key rather than ignore it', async () => {
  const { token } = await createStaff(app);
  const { organizationId } = await createOrganization(app.worker);
  const headers = { 'idempotency-key': 'once' };
  const body = { reason: 'policy', note: 'Ticket 4711' };
  const path = `/admin/orgs/${organizationId}/suspend`;
  const refused = await app.call(path, { method: 'POST', token, body, headers });
  expect(expectProblem(refused, 'validation_error').errors).toMatchObject([{ path: 'Idempotency-Key' }]);
  expect((await app.call(path, { method: 'POST', token, body })).statusCode).toBe(200);
});

describe('the session of a staff member', () => {
  test.each([
    ['has no second factor', { factors: [] }],
    ['belongs to single sign-on', { method: 'sso' }],
    ['belongs to another provider', { method: 'oauth', factors: ['totp'] }],
    ['can only enroll a factor', { kind: 'enroll' }],
  ] as const)('is refused if it %s', async (_what, session) => {
    const userId = await createTestUser(app.worker);
    await addStaffMember(app.worker, userId, 'admin');
    const { token } = await createTestSession(app.worker, userId, session);
    expectProblem(await app.call('/admin/me', { token }), 'permission_denied');
  });

  test('reaches the administration by passkey', async () => {
    const userId = await createTestUser(app.worker);
    await addStaffMember(app.worker, userId, 'support');
    const { token } = await createTestSession(app.worker, userId, { method: 'passkey' });
    expect((await app.call('/admin/me', { token })).json()).toEqual({
      object: 'staff_identity',
      user_id: userId,
      role: 'support',
    });
  });

  test('expires for the administration after 12 hours', async () => {
    const userId = await createTestUser(app.worker);
    await addStaffMember(app.worker, userId, 'admin');
    const authenticatedAt = new Date(Date.now() - 12 * 3_600_000 - 1_000);
    const { token } = await createTestSession(app.worker, userId, { factors: ['totp'], authenticatedAt });
    expectProblem(await app.call('/admin/me', { token }), 'session_expired');
    expect((await app.call('/user/me', { token })).statusCode).toBe(200);
  });

  test('loses access with the next request after the role is taken, the account suspended or the session revoked', async () => {
    const changes = [
      (userId: string) => sql`delete from staff_members where user_id = ${userId} returning user_id`,
      (userId: string) => sql`update users set status = 'suspended' where id = ${userId} returning id`,
      (userId: string) => sql`update sessions set revoked_at = now() where user_id = ${userId} returning id`,
    ];
    for (const change of changes) {
      const { userId, token } = await createStaff(app);
      expect((await app.call('/admin/me', { token })).statusCode).toBe(200);
      await query(app.worker, change(userId));
      expect([401, 403]).toContain((await app.call('/admin/me', { token })).statusCode);
    }
  });
});

describe('signing in as staff', () => {
  test('asks for a second factor, and leaves the last one', async () => {
    const { email, userId } = await createAccountQuickly(app);
    await addStaffMember(app.worker, userId, 'admin');
    const { token } = (await signIn(app, email)).json();
    expectProblem(await app.call('/admin/me', { token }), 'permission_denied');
    expectProblem(await app.call('/user/me/sessions', { token }), 'policy_violation');
    const setup = (await app.call('/auth/mfa/totp/setup', { method: 'POST', token, body: {} })).json();
    const body = { enrollment_id: setup.enrollment_id, code: await generate({ secret: setup.secret }) };
    const { enrollment } = (await app.call('/auth/mfa/totp/verify', { method: 'POST', token, body })).json();
    expect((await app.call('/admin/me', { token })).json()).toMatchObject({ role: 'admin' });
    const removed = await app.call(`/auth/mfa/${enrollment.id}`, { method: 'DELETE', token });
    expect(expectProblem(removed, 'policy_violation')).toMatchObject({
      detail: expect.stringContaining('Staff'),
    });
  });
});

describe('the staff role of the database', () => {
  test('reads no mail, password, factor or token', async () => {
    const tables = ['messages', 'drafts', 'attachments', 'events', 'webhook_deliveries', 'inbound_receipts'];
    const readable = await query<{ name: string }>(
      app.worker,
      sql`select name from unnest(${`{${tables.join(',')}}`}::text[]) name
      where has_any_column_privilege('agent_email_staff', name, 'select')`,
    );
    expect(readable).toEqual([]);
    const outcomes = await query<{ name: string }>(
      app.worker,
      sql`select distinct a.attname as name from pg_attribute a
      where a.attrelid in ('message_recipients'::regclass, 'send_attempts'::regclass) and a.attnum > 0
        and has_column_privilege('agent_email_staff', a.attrelid, a.attnum, 'select') order by 1`,
    );
    expect(outcomes.map(({ name }) => name)).toEqual(['message_id', 'position', 'state', 'status']);
    const columns = await query<object>(
      app.worker,
      sql`select c.relname, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and a.attname ~ '(password|token_hash|code_hash|secret|public_key)' and a.attnum > 0
        and has_column_privilege('agent_email_staff', c.oid, a.attnum, 'select')`,
    );
    expect(columns).toEqual([]);
  });

  test('writes a change by staff to the log of the service and to that of the organization', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    const { userId, sessionId, token: staffToken } = await createStaff(app);
    const person = { userId, sessionId } as Parameters<typeof recordStaffAudit>[1]['person'];
    const staff = { staffId: userId, role: 'admin', person, ip: '192.0.2.9', requestId: 'req_test' } as const;
    await app.database.staffTransaction(staff, ({ db }) =>
      recordStaffAudit(db, staff, {
        action: 'organization.updated',
        resourceType: 'organization',
        resourceId: organizationId,
        organizationIds: [organizationId],
        reason: 'Ticket 7',
      }),
    );
    const [entry] = (await app.call('/org/audit-log', { token })).json().data;
    expect(entry).toMatchObject({
      action: 'organization.updated',
      actor: { kind: 'staff', id: userId, name: 'Staff' },
      credential_id: sessionId,
      reason: 'Ticket 7',
      ip: '192.0.2.9',
    });
    const filter = `staff_id=${userId}&org_id=${organizationId}&action=organization.updated`;
    const own = (await app.call(`/admin/audit-log?${filter}`, { token: staffToken })).json().data;
    expect(own).toMatchObject([
      {
        staff: { id: userId },
        session_id: sessionId,
        organization: { id: organizationId, name: 'Test' },
        reason: 'Ticket 7',
        ip: '192.0.2.9',
      },
    ]);
    const later = new Date(Date.now() + 60_000).toISOString();
    const none = await app.call(`/admin/audit-log?${filter}&after=${later}`, { token: staffToken });
    expect(none.json().data).toEqual([]);
  });
});
