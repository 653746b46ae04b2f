import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type RawBuilder, sql } from 'kysely';
import { settleImpersonations } from '../../domain/impersonation/report-end.ts';
import { eventually } from '../support/eventually.ts';
import { impersonate } from '../support/impersonation.ts';
import { type LiveStream, listen, openStream } from '../support/live-stream.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createStaff, type TestStaff } from '../support/staff.ts';

const config = { TRUST_PROXY: '127.0.0.1', STREAM_HEARTBEAT_MS: '200' };
const app = useTestApp({ config });
/** Another API process on the same database. */
const other = useTestApp({ config: { ...config, STREAM_HEARTBEAT_MS: '60000' } });

let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

const start = (staff: TestStaff, body: object = {}, id = organization.organizationId) =>
  app.call(`/admin/orgs/${id}/impersonate`, {
    method: 'POST',
    token: staff.token,
    body: { reason: 'Ticket 7', ...body },
  });
const end = (staff: TestStaff, id: string) =>
  app.call(`/admin/impersonation-sessions/${id}`, { method: 'DELETE', token: staff.token });
const readOrganization = (token: string) => app.call('/org', { token });
const setPolicies = (body: object) => app.call('/org/policies', { method: 'PATCH', token: owner, body });
const readEmails = () =>
  query<{ template: string; userId: string; params: Record<string, unknown> }>(
    app.worker,
    sql`select template, user_id as "userId", params from notifications
    where org_id = ${organization.organizationId} order by id`,
  );
const auditOf = async (action: string) =>
  (await app.call(`/org/audit-log?action=${action}`, { token: owner })).json().data;

describe('an impersonation', () => {
  test('shows the organization as its people see it, says so in every answer, and is in both logs', async () => {
    const { id, token, expiresAt, staff } = await impersonate(app, organization.organizationId);
    expect(token).toMatch(/^imt_[0-9A-Za-z]{43}$/);
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 30 * 60_000)).toBeLessThan(10_000);
    const inbox = await createInbox(app.worker, organization);
    for (const path of ['/org', `/inboxes/${inbox.id}`, '/org/members', '/api-keys', '/org/policies']) {
      const response = await app.call(path, { token });
      expect({ path, status: response.statusCode }).toEqual({ path, status: 200 });
      expect(response.headers['x-impersonated-by']).toBe(staff.userId);
    }
    for (const path of ['/inboxes/inb_none', '/drafts?limit=x', '/user/me', '/admin/me'])
      expect((await app.call(path, { token })).headers['x-impersonated-by']).toBe(staff.userId);
    const [entry] = await auditOf('impersonation.started');
    expect(entry).toMatchObject({
      actor: { kind: 'staff', id: staff.userId },
      resource: { type: 'impersonation', id },
      reason: 'Ticket 7',
      details: { allows_write: false },
    });
    const log = await app.call(`/admin/audit-log?resource_id=${id}`, { token: staff.token });
    expect(log.json().data).toMatchObject([{ action: 'impersonation.started', reason: 'Ticket 7' }]);
  });

  test('is announced to every owner', async () => {
    const second = await createTestUser(app.worker, { ...organization, role: 'owner' });
    const { staff } = await impersonate(app, organization.organizationId);
    const emails = await readEmails();
    expect(emails.map(({ userId }) => userId).sort()).toEqual([organization.ownerId, second].sort());
    expect(emails[0]).toMatchObject({
      template: 'staff-access',
      params: { staffId: staff.userId, reason: 'Ticket 7', allowsWrite: false },
    });
  });

  test('takes a reason, and at most an hour', async () => {
    const staff = await createStaff(app);
    for (const body of [
      { reason: '' },
      { reason: '  ' },
      { reason: undefined },
      { duration_minutes: 61 },
      { duration_minutes: 0 },
      { duration_minutes: 1.5 },
      { write: 'yes' },
      { role: 'owner' },
    ])
      expectProblem(await start(staff, body), 'validation_error');
    expectProblem(await start(staff, {}, 'org_none'), 'not_found');
    await query(
      app.worker,
      sql`update organizations set deleted_at = now() where id = ${organization.organizationId} returning id`,
    );
    expectProblem(await start(staff), 'conflict');
    expect(await readEmails()).toEqual([]);
  });

  test('for writing takes an admin who has just signed in', async () => {
    const support = await createStaff(app, { role: 'support' });
    expectProblem(await start(support, { write: true }), 'permission_denied');
    const admin = await createStaff(app);
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where id = ${admin.sessionId} returning id`,
    );
    expectProblem(await start(admin, { write: true }), 'session_expired');
    expect((await start(admin)).statusCode).toBe(201);
  });

  test('reaches no other organization', async () => {
    const foreign = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, foreign);
    const { token } = await impersonate(app, organization.organizationId);
    const named = { 'x-org-id': foreign.organizationId };
    expectProblem(await app.call('/org', { token, headers: named }), 'not_found');
    expectProblem(await app.call(`/inboxes/${inbox.id}`, { token }), 'not_found');
    const environment = { 'x-env-id': foreign.productionEnvironmentId };
    expectProblem(await app.call('/org', { token, headers: environment }), 'not_found');
  });

  test('changes something only if it was begun for that, as staff in the audit log', async () => {
    const reading = await impersonate(app, organization.organizationId);
    const create = (token: string) =>
      app.call('/inboxes', {
        method: 'POST',
        token,
        body: { username: `i${Date.now()}`, domain: 'mail.test' },
      });
    expect(expectProblem(await create(reading.token), 'permission_denied')).toMatchObject({
      impersonation: 'write',
    });
    const writing = await impersonate(app, organization.organizationId, { write: true });
    const created = await create(writing.token);
    expect(created.statusCode).toBe(201);
    expect(await auditOf('inbox.created')).toMatchObject([
      {
        actor: { kind: 'staff', id: writing.staff.userId },
        credential_id: writing.id,
        resource: { id: created.json().id },
      },
    ]);
  });

  test('sends nothing, neither now nor by a schedule, also with writing', async () => {
    const inbox = await createInbox(app.worker, organization);
    const { token } = await impersonate(app, organization.organizationId, { write: true });
    const content = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' };
    const post = (path: string, body?: object) => app.call(path, { method: 'POST', token, body });
    expectProblem(await post(`/inboxes/${inbox.id}/messages`, content), 'permission_denied');
    const sendAt = new Date(Date.now() + 60_000).toISOString();
    const scheduled = await post(`/inboxes/${inbox.id}/drafts`, { ...content, send_at: sendAt });
    expectProblem(scheduled, 'permission_denied');
    const draft = await post(`/inboxes/${inbox.id}/drafts`, content);
    expect(draft.statusCode).toBe(201);
    expectProblem(await post(`/drafts/${draft.json().id}/send`), 'permission_denied');
    const patch = { method: 'PATCH', token, body: { send_at: sendAt } } as const;
    expectProblem(await app.call(`/drafts/${draft.json().id}`, patch), 'permission_denied');
  });

  test('cannot begin another one, and is no person', async () => {
    const { token } = await impersonate(app, organization.organizationId, { write: true });
    const calls = [
      app.call(`/admin/orgs/${organization.organizationId}/impersonate`, {
        method: 'POST',
        token,
        body: { reason: 'x' },
      }),
      app.call('/user/me', { token }),
      app.call('/user/me/change-email', { method: 'POST', token, body: {} }),
      app.call('/auth/mfa/totp/setup', { method: 'POST', token, body: {} }),
      app.call('/auth/logout', { method: 'POST', token }),
      app.call('/invitations/accept', { method: 'POST', token, body: { token: 'x' } }),
    ];
    for (const call of calls)
      expect(expectProblem(await call, 'permission_denied')).toMatchObject({ impersonation: 'never' });
  });

  test('refuses unknown, malformed and foreign tokens', async () => {
    for (const token of [`imt_${'a'.repeat(43)}`, `imt_${'0'.repeat(43)}`])
      expectProblem(await readOrganization(token), 'session_expired');
    for (const token of ['imt_', 'imt_short', `imt_${'a'.repeat(44)}`])
      expectProblem(await readOrganization(token), 'unauthenticated');
  });

  test('has at most five others beside it', async () => {
    const staff = await createStaff(app, { role: 'support' });
    for (let count = 0; count < 5; count += 1) expect((await start(staff)).statusCode).toBe(201);
    expectProblem(await start(staff), 'conflict');
    const hasty = await createStaff(app, { role: 'support' });
    const started = await Promise.all(Array.from({ length: 9 }, () => start(hasty)));
    expect(started.filter(({ statusCode }) => statusCode === 201)).toHaveLength(5);
  });
});

describe('an impersonation ends', () => {
  const isOver = async (token: string) => expectProblem(await readOrganization(token), 'session_expired');

  test.each<[string, (staff: TestStaff, id: string) => RawBuilder<unknown>, 'support' | 'admin']>([
    [
      'at its time',
      (_staff, id) =>
        sql`update impersonations set expires_at = date_trunc('milliseconds', now()) where id = ${id} returning id`,
      'support',
    ],
    [
      'with the sign-out of the staff member',
      ({ sessionId }) => sql`update sessions set revoked_at = now() where id = ${sessionId} returning id`,
      'support',
    ],
    [
      'when the staff member has to sign in again',
      ({ sessionId }) =>
        sql`update sessions set authenticated_at = now() - interval '13 hours' where id = ${sessionId} returning id`,
      'support',
    ],
    [
      'with the staff role',
      ({ userId }) => sql`delete from staff_members where user_id = ${userId} returning user_id`,
      'support',
    ],
    [
      'for writing, with the role admin',
      ({ userId }) =>
        sql`update staff_members set role = 'support' where user_id = ${userId} returning user_id`,
      'admin',
    ],
    [
      'when the account of the staff member is suspended',
      ({ userId }) => sql`update users set status = 'suspended' where id = ${userId} returning id`,
      'support',
    ],
    [
      'when that account is deleted',
      ({ userId }) => sql`update users set deleted_at = now() where id = ${userId} returning id`,
      'support',
    ],
  ])('%s', async (_when, change, role) => {
    const { id, token, staff } = await impersonate(app, organization.organizationId, {
      write: role === 'admin',
    });
    expect((await readOrganization(token)).statusCode).toBe(200);
    await query(app.worker, change(staff, id));
    await isOver(token);
  });

  test('when it is ended: by the staff member, or an admin, and no one else', async () => {
    const first = await impersonate(app, organization.organizationId);
    const stranger = await createStaff(app, { role: 'support' });
    expectProblem(await end(stranger, first.id), 'permission_denied');
    expect((await readOrganization(first.token)).statusCode).toBe(200);
    for (const staff of [first.staff, first.staff, await createStaff(app)])
      expect((await end(staff, first.id)).statusCode).toBe(204);
    await isOver(first.token);
    const second = await impersonate(app, organization.organizationId);
    expect((await end(await createStaff(app), second.id)).statusCode).toBe(204);
    await isOver(second.token);
    expectProblem(await end(stranger, 'imp_none'), 'not_found');
  });

  test('when the organization is closed', async () => {
    const { token } = await impersonate(app, organization.organizationId);
    await query(
      app.worker,
      sql`update organizations set deleted_at = now() where id = ${organization.organizationId} returning id`,
    );
    expectProblem(await readOrganization(token), 'organization_deleted');
  });

  test('and says what it looked at: once, with counts and resources, in both logs', async () => {
    const inbox = await createInbox(app.worker, organization);
    const { id, token, staff } = await impersonate(app, organization.organizationId, { write: true });
    for (const path of ['/org', '/org', `/inboxes/${inbox.id}`]) await app.call(path, { token });
    await app.call(`/inboxes/${inbox.id}`, { method: 'PATCH', token, body: { display_name: 'New' } });
    await app.call('/org', { method: 'PATCH', token, body: { name: 'Taken over' } });
    const listed = await app.call(`/admin/orgs/${organization.organizationId}/impersonation-sessions`, {
      token: staff.token,
    });
    expect(listed.json().data).toMatchObject([
      {
        id,
        status: 'active',
        write: true,
        operations: expect.arrayContaining([
          { operation: 'organization.get', change: false, calls: 2 },
          { operation: 'inboxes.update', change: true, calls: 1 },
        ]),
      },
    ]);
    await Promise.all([end(staff, id), end(staff, id), settleImpersonations(app.worker)]);
    await settleImpersonations(app.worker);
    const expected = {
      allows_write: true,
      reads: { 'organization.get': 2, 'inboxes.get': 1 },
      changes: { 'inboxes.update': 1 },
      resources: [inbox.id],
      more_resources: false,
    };
    const entries = await auditOf('impersonation.ended');
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ actor: { id: staff.userId }, details: expected });
    const log = await app.call(`/admin/audit-log?resource_id=${id}&action=impersonation.ended`, {
      token: staff.token,
    });
    expect(log.json().data).toMatchObject([{ details: expected }]);
  });

  test('for good if the staff member has signed out, and its end is recorded by the sweep', async () => {
    const { token, staff } = await impersonate(app, organization.organizationId);
    await app.call('/org', { token });
    await query(app.worker, sql`delete from staff_members where user_id = ${staff.userId} returning user_id`);
    await settleImpersonations(app.worker);
    expect(await auditOf('impersonation.ended')).toMatchObject([
      { details: { reads: { 'organization.get': 1 } } },
    ]);
    await query(
      app.worker,
      sql`insert into staff_members (user_id, role, created_at) values (${staff.userId}, 'admin', now()) returning user_id`,
    );
    await isOver(token);
  });
});

describe('an impersonation never comes back', () => {
  const isOver = async (token: string) => expectProblem(await readOrganization(token), 'session_expired');
  const changeStaff = async (method: 'PATCH' | 'DELETE', userId: string, body?: object) => {
    const { token } = await createStaff(app);
    const path = method === 'DELETE' ? `${userId}?note=Moved` : userId;
    const { statusCode } = await app.call(`/admin/staff/${path}`, { method, token, body });
    expect(statusCode).toBeLessThan(300);
  };

  test('with the role that its staff member lost and has again, without any sweep', async () => {
    const writing = await impersonate(app, organization.organizationId, { write: true });
    const { userId } = writing.staff;
    const reading = await impersonate(app, organization.organizationId, { staff: writing.staff });
    await changeStaff('PATCH', userId, { role: 'support', note: 'Moved' });
    await changeStaff('PATCH', userId, { role: 'admin', note: 'Back' });
    await isOver(writing.token);
    expect((await readOrganization(reading.token)).statusCode).toBe(200);
    await changeStaff('DELETE', userId);
    await query(
      app.worker,
      sql`insert into staff_members (user_id, role, created_at) values (${userId}, 'admin', now()) returning user_id`,
    );
    await isOver(reading.token);
    const ended = (await auditOf('impersonation.ended')).map(
      ({ resource }: { resource: { id: string } }) => resource.id,
    );
    expect(ended).toEqual(expect.arrayContaining([writing.id, reading.id]));
  });

  test.each<[string, (isOpen: boolean) => Promise<unknown>]>([
    [
      'was closed',
      (isOpen) =>
        query(
          app.worker,
          sql`update organizations set deleted_at = ${isOpen ? null : new Date()}
          where id = ${organization.organizationId} returning id`,
        ),
    ],
    ['withdrew its consent', (isOpen) => setPolicies({ support_access: isOpen ? 'allowed' : 'ask' })],
  ])('after the organization %s, and the sweep has seen that', async (_what, setOpen) => {
    const { token } = await impersonate(app, organization.organizationId);
    await setOpen(false);
    await settleImpersonations(app.worker);
    await setOpen(true);
    await isOver(token);
  });
});

describe('the consent of the organization', () => {
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

  test('is asked for by email once a day, and limits the session to its time', async () => {
    const staff = await createStaff(app, { role: 'support' });
    expect((await setPolicies({ support_access: 'ask' })).statusCode).toBe(200);
    for (const _attempt of [1, 2])
      expect(expectProblem(await start(staff), 'policy_violation')).toMatchObject({
        policy: 'support_access',
      });
    expect((await readEmails()).map(({ template }) => template)).toEqual(['staff-access-requested']);
    expect((await setPolicies({ support_access_until: inMinutes(-1) })).statusCode).toBe(200);
    expectProblem(await start(staff), 'policy_violation');
    expect((await setPolicies({ support_access_until: inMinutes(10) })).json()).toMatchObject({
      support_access: 'ask',
    });
    const { token } = (await start(staff)).json();
    expect((await readOrganization(token)).statusCode).toBe(200);
    await query(
      app.worker,
      sql`update organization_policies set support_access_until = now()
      where org_id = ${organization.organizationId} returning org_id`,
    );
    expectProblem(await readOrganization(token), 'session_expired');
  });

  test('is withdrawn with the next request, and given by people of the organization alone', async () => {
    const { token } = await impersonate(app, organization.organizationId, { write: true });
    const body = { support_access: 'allowed', support_access_until: inMinutes(600) };
    expectProblem(await app.call('/org/policies', { method: 'PATCH', token, body }), 'permission_denied');
    await setPolicies({ support_access: 'ask' });
    expectProblem(await readOrganization(token), 'session_expired');
  });
});

describe('a stream of an impersonation', () => {
  const opened: LiveStream[] = [];
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.close();
  });

  test('closes at the end of its time, on every instance, between two heartbeats', async () => {
    const { id, token } = await impersonate(app, organization.organizationId);
    await query(
      app.worker,
      sql`update impersonations set expires_at = now() + interval '2 seconds' where id = ${id} returning id`,
    );
    const stream = await openStream(await listen(other), { token });
    opened.push(stream);
    expect(stream.status).toBe(200);
    expect(stream.headers['x-impersonated-by']).toMatch(/^usr_/);
    await eventually(() => expect(stream.comments).toContain('closing, session_expired'), 10_000);
  });

  test('closes when the session that began it is over', async () => {
    const { token, staff } = await impersonate(app, organization.organizationId);
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '12 hours' + interval '3 seconds'
      where id = ${staff.sessionId} returning id`,
    );
    const stream = await openStream(await listen(other), { token });
    opened.push(stream);
    await eventually(() => expect(stream.ended).toBe(true), 10_000);
  });

  test('closes when the staff member signs out', async () => {
    const { token, staff } = await impersonate(app, organization.organizationId);
    const stream = await openStream(await listen(app), { token });
    opened.push(stream);
    await app.call('/auth/logout', { method: 'POST', token: staff.token });
    await eventually(() => expect(stream.ended).toBe(true), 10_000);
  });
});

describe('in a browser', () => {
  async function begin() {
    const staff = await createStaff(app);
    const browser = createPageClient(app);
    browser.cookies.set('session', staff.token);
    const path = `/admin/organizations/${organization.organizationId}/impersonations`;
    await browser.open(path);
    const page = await browser.submit(path, { note: 'Ticket 7', duration_minutes: '20' });
    return { staff, browser, page, path };
  }

  test('an impersonation is a cookie of its own; pages have a banner, and a button that ends it', async () => {
    const { staff, browser, page, path } = await begin();
    expect(browser.path).toBe(`/overview?org=${organization.organizationId}`);
    expect(page.body).toContain('You see this organization as staff');
    expect(page.headers['x-impersonated-by']).toBe(staff.userId);
    expect(browser.cookies.get('session')).toBe(staff.token);
    expect(browser.cookies.get('impersonation')).toMatch(/^imt_/);
    expect(page.body).not.toContain(String(browser.cookies.get('impersonation')));
    const token = String(browser.cookies.get('impersonation'));
    const ended = await browser.submit('/impersonation/end');
    expect(browser.cookies.has('impersonation')).toBe(false);
    expect(ended.body).not.toContain('You see this organization as staff');
    expectProblem(await readOrganization(token), 'session_expired');
    const history = await browser.open(path);
    expect(history.body).toContain('pages.overview');
    expect(history.body).toContain('ended');
  });

  test('its cookie is worth nothing without the session that began it', async () => {
    const { browser } = await begin();
    const thief = createPageClient(app);
    thief.cookies.set('impersonation', String(browser.cookies.get('impersonation')));
    await thief.open('/settings');
    expect(thief.path).not.toContain('/settings');
    const colleague = await createStaff(app);
    thief.cookies.set('session', colleague.token);
    thief.cookies.set('impersonation', String(browser.cookies.get('impersonation')));
    await thief.open('/settings');
    expect(thief.cookies.has('impersonation')).toBe(false);
    expect(thief.path).not.toContain('/settings');
  });

  test('a page takes neither an impersonation nor an API key in place of the session', async () => {
    const { browser } = await begin();
    for (const token of [String(browser.cookies.get('impersonation')), organization.token]) {
      const thief = createPageClient(app);
      thief.cookies.set('session', token);
      await thief.open('/settings');
      expect(thief.path).toBe('/login?next=%2Fsettings');
    }
  });

  test('forms of the organization are refused, and the sign-out ends it', async () => {
    const { browser, staff } = await begin();
    const token = String(browser.cookies.get('impersonation'));
    const page = await browser.open(`/settings?org=${organization.organizationId}`);
    // The page shows none, so this is a request by hand.
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(page.body) ?? [];
    const renamed = await browser.post(`/settings?org=${organization.organizationId}`, {
      csrf,
      name: 'Taken over',
      slug: 'taken-over',
    });
    expect(renamed.statusCode).toBe(403);
    expect(renamed.body).toContain('Staff cannot do this in the name of an organization');
    expect((await readOrganization(owner)).json().name).toBe('Test');
    await browser.open(`/settings?org=${organization.organizationId}`);
    await browser.submit('/logout');
    expect([...browser.cookies.keys()]).not.toContain('impersonation');
    expectProblem(await readOrganization(token), 'session_expired');
    expectProblem(await app.call('/admin/me', { token: staff.token }), 'unauthenticated');
  });

  test('the console names a refusal, and begins nothing', async () => {
    const staff = await createStaff(app, { role: 'support' });
    const browser = createPageClient(app);
    browser.cookies.set('session', staff.token);
    const path = `/admin/organizations/${organization.organizationId}/impersonations`;
    await browser.open(path);
    const page = await browser.submit(path, { note: 'x', duration_minutes: '20', write: 'on' });
    expect(page.statusCode).toBe(403);
    expect(page.body).toContain('Only staff with the role admin');
    expect(browser.cookies.has('impersonation')).toBe(false);
  });
});
