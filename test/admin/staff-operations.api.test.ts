import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { deleteExpiredLinkSecrets } from '../../domain/notifications/link-lifetimes.ts';
import { createOrganization } from '../support/organizations.ts';
import { arrangeAmbiguousSend } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { createFailedEmail, createTestEndpoint } from '../support/staff-operations.ts';

const schedule = (id: string, isPaused: boolean) => ({
  id,
  isPaused,
  note: isPaused ? 'by ada' : null,
  lastRunAt: null,
  nextRunAt: null,
});
const SCHEDULES = [schedule('reconcile', true), schedule('check-usage', false)];
const app = useTestApp({
  schedules: {
    list: async () => SCHEDULES,
    find: async (wanted) => SCHEDULES.find(({ id }) => id === wanted),
  },
});
const note = 'Ticket 4711';

async function arrange(role: 'support' | 'admin' = 'admin') {
  const organization = await createOrganization(app.worker);
  const staff = await createStaff(app, { role });
  const before = app.commands.length;
  return {
    ...organization,
    staff,
    commands: () => app.commands.slice(before),
    get: (path: string) => app.call(path, { token: staff.token }),
    post: (path: string, body: object = { note }) =>
      app.call(path, { method: 'POST', token: staff.token, body }),
  };
}

describe('emails of the service that failed', () => {
  test('are listed with their reason, newest first, page by page', async () => {
    const world = await arrange('support');
    const older = await createFailedEmail(app.worker, world);
    const newer = await createFailedEmail(app.worker, world, { template: 'invitation' });
    const path = `/admin/system-emails?org_id=${world.organizationId}`;
    const { data } = (await world.get(path)).json();
    expect(data.map(({ id }: { id: string }) => id)).toEqual([newer, older]);
    expect(data[1]).toEqual({
      object: 'system_email',
      id: older,
      template: 'api-key-expiring',
      status: 'failed',
      to: `${world.ownerId}@example.test`,
      org_id: world.organizationId,
      user_id: world.ownerId,
      attempts: 9,
      last_error: '550 5.7.1 relaying denied',
      next_attempt_at: null,
      link_expires_at: null,
      created_at: expect.any(String),
      sent_at: null,
    });
    expect(Date.parse(data[0].link_expires_at) - Date.parse(data[0].created_at)).toBe(7 * 86_400_000);
    const first = (await world.get(`${path}&limit=1`)).json();
    const second = (await world.get(`${path}&limit=1&cursor=${first.next_cursor}`)).json();
    expect([first.data[0].id, second.data[0].id, second.has_more]).toEqual([newer, older, false]);
    expect((await world.get(`${path}&status=sent`)).json().data).toEqual([]);
    expectProblem(await world.get('/admin/system-emails?status=lost'), 'validation_error');
  });

  test('are sent again by support, each in a run of its own', async () => {
    const world = await arrange('support');
    const email = await createFailedEmail(app.worker, world);
    const retry = async () =>
      (await world.post('/admin/system-emails/retry', { ids: [email, email], note })).json();
    expect(await retry()).toEqual({
      object: 'system_email_retry',
      results: [{ object: 'system_email_retry_result', id: email, status: 'done' }],
    });
    expect(world.commands()).toMatchObject([
      { start: { workflowId: `notification/${email}/2`, input: { notificationId: email } } },
    ]);
    expect(await retry()).toMatchObject({ results: [{ status: 'failed', error: { code: 'conflict' } }] });
    const pending = await world.get(`/admin/system-emails?org_id=${world.organizationId}&status=pending`);
    expect(pending.json().data).toMatchObject([{ id: email, attempts: 0 }]);
  });

  test('of two people who send one again at the same time, one does', async () => {
    const world = await arrange('support');
    const email = await createFailedEmail(app.worker, world);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => world.post('/admin/system-emails/retry', { ids: [email], note })),
    );
    const statuses = answers.map((answer) => answer.json().results[0].status);
    expect(statuses.sort()).toEqual(['done', 'failed', 'failed', 'failed', 'failed']);
    expect(world.commands()).toHaveLength(1);
  });

  test('keep their link until it expires, and are refused after that', async () => {
    const world = await arrange('support');
    const createdAt = new Date(Date.now() - 2 * 3_600_000);
    const expired = await createFailedEmail(app.worker, world, { template: 'reset-password', createdAt });
    const valid = await createFailedEmail(app.worker, world, { template: 'verify-email', createdAt });
    const secretsOf = () =>
      query<{ id: string }>(
        app.worker,
        sql`select id from notifications where id = any(${[expired, valid]}) and sealed_params is not null`,
      );
    await query(
      app.worker,
      sql`update notifications set sealed_params = 'x' where id = any(${[expired, valid]}) returning id`,
    );
    await deleteExpiredLinkSecrets(app.worker);
    expect(await secretsOf()).toEqual([{ id: valid }]);
    const ids = [expired, valid, 'ntf_unknown'];
    const { results } = (await world.post('/admin/system-emails/retry', { ids, note })).json();
    expect(results).toEqual(
      [
        {
          id: expired,
          status: 'failed',
          error: { code: 'conflict', detail: expect.stringContaining('link') },
        },
        { id: valid, status: 'done' },
        { id: 'ntf_unknown', status: 'failed', error: { code: 'not_found', detail: expect.any(String) } },
      ].map((result) => ({ object: 'system_email_retry_result', ...result })),
    );
  });

  test.each([{ ids: [] }, { ids: Array.from({ length: 101 }, () => 'ntf_1') }, {}, { ids: ['\u0000'] }])(
    'refuse %j, or find nothing',
    async (body) => {
      const { post } = await arrange('support');
      const response = await post('/admin/system-emails/retry', { ...body, note });
      expect(response.statusCode).toBeLessThan(500);
      if (response.statusCode === 200) expect(response.json().results).toMatchObject([{ status: 'failed' }]);
    },
  );
});

describe('a retention', () => {
  const addPolicy = (organizationId: string) =>
    query(
      app.worker,
      sql`insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
      values (${organizationId}, 30, 30, now(), '[]', now(), now()) returning org_id`,
    );

  test('is postponed by an admin, and both logs say why', async () => {
    const { organizationId, token, staff, get, post } = await arrange();
    const path = `/admin/orgs/${organizationId}/retention-policy`;
    expectProblem(await post(`${path}/postpone`, { days: 7, note }), 'conflict');
    await addPolicy(organizationId);
    const postponed = await post(`${path}/postpone`, { days: 7, note });
    const until = Date.parse(postponed.json().postponed_until);
    expect(until - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
    expect((await get(path)).json()).toEqual(postponed.json());
    const entry = { action: 'retention_policy.postponed', reason: note, details: { days: 7 } };
    expect((await app.call('/org/audit-log', { token })).json().data[0]).toMatchObject({
      ...entry,
      actor: { kind: 'staff', id: staff.userId },
    });
    expect((await get(`/admin/audit-log?staff_id=${staff.userId}`)).json().data).toMatchObject([entry]);
    expectProblem(await post(`${path}/postpone`, { days: 91, note }), 'validation_error');
  });

  test('is not postponed by support, nor of an unknown organization', async () => {
    const { organizationId, get, post } = await arrange('support');
    const path = `/admin/orgs/${organizationId}/retention-policy`;
    expectProblem(await post(`${path}/postpone`, { days: 7, note }), 'permission_denied');
    expect((await get(path)).json()).toMatchObject({ retention_days: 0 });
    const admin = await arrange();
    const unknown = '/admin/orgs/org_unknown/retention-policy';
    expectProblem(await admin.post(`${unknown}/postpone`, { days: 7, note }), 'not_found');
    expectProblem(await admin.get(unknown), 'not_found');
  });
});

describe('the backlog of an endpoint', () => {
  test('is listed, replayed and dropped by an admin', async () => {
    const { organizationId, token, commands, get, post } = await arrange();
    const endpoint = await createTestEndpoint(app, token);
    const path = `/admin/orgs/${organizationId}/webhook-endpoints`;
    const [listed] = (await get(path)).json().data;
    expect(listed).toMatchObject({
      id: endpoint,
      pending: 0,
      held: 0,
      oldest_at: null,
      running_job_id: null,
    });
    expect(JSON.stringify(listed)).not.toContain('whsec');

    const replayed = await post(`${path}/${endpoint}/replay`, { since: '2026-01-01T00:00:00Z', note });
    expect([replayed.statusCode, replayed.json()]).toMatchObject([
      202,
      { kind: 'replay', status: 'running' },
    ]);
    expect((await get(path)).json().data[0].running_job_id).toBe(replayed.json().id);
    const again = await post(`${path}/${endpoint}/replay`, { since: '2026-01-01T00:00:00Z', note });
    expectProblem(again, 'conflict');
    const dropped = await post(`${path}/${endpoint}/cancel-pending`);
    expect([dropped.statusCode, dropped.json().kind]).toEqual([202, 'cancel']);
    expect(commands().filter(({ start }) => start?.workflowType === 'runBulkJob')).toHaveLength(2);
    const jobs = await app.call(`/webhooks/jobs/${replayed.json().id}`, { token });
    expect(jobs.json().status).toBe('stopped');
    const entries = (await app.call('/org/audit-log', { token })).json().data;
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'webhook_endpoint.deliveries_canceled', reason: note },
      { action: 'webhook_endpoint.replayed', reason: note },
    ]);
  });

  test('counts what waits', async () => {
    const { organizationId, token, get } = await arrange('support');
    const endpoint = await createTestEndpoint(app, token);
    await app.call(`/webhooks/endpoints/${endpoint}/test`, { method: 'POST', token, body: {} });
    const [listed] = (await get(`/admin/orgs/${organizationId}/webhook-endpoints`)).json().data;
    expect(listed).toMatchObject({ pending: 1, held: 0, oldest_at: expect.any(String) });
  });

  test('of another organization is not found, and support changes nothing', async () => {
    const { organizationId, post, token } = await arrange();
    const other = await arrange('support');
    const foreign = await createTestEndpoint(app, other.token);
    const path = `/admin/orgs/${organizationId}/webhook-endpoints`;
    expectProblem(await post(`${path}/${foreign}/cancel-pending`), 'not_found');
    const own = await createTestEndpoint(app, token);
    expectProblem(await other.post(`${path}/${own}/cancel-pending`), 'permission_denied');
    const empty = { since: '2026-02-01T00:00:00Z', until: '2026-01-01T00:00:00Z', note };
    expectProblem(await post(`${path}/${own}/replay`, empty), 'validation_error');
    const log = (await app.call('/org/audit-log', { token })).json().data;
    expect(log.filter(({ actor }: { actor: { kind: string } }) => actor.kind === 'staff')).toEqual([]);
  });
});

describe('commands that were given up', () => {
  const addDead = async (organizationId: string) => {
    const [row] = await query<{ id: string }>(
      app.worker,
      sql`insert into outbox (org_id, command, priority, available_at, created_at, attempts, dead_at, last_error)
      values (${organizationId}, ${JSON.stringify({ signal: { workflowId: 'send/msg_1' } })}::jsonb, 3, now(), now(), 200,
        now(), 'no namespace') returning id::text as id`,
    );
    return row?.id ?? '';
  };

  test('are listed with their error and retried by support', async () => {
    const { organizationId, token, get, post } = await arrange('support');
    const [id, other] = [await addDead(organizationId), await addDead(organizationId)];
    const mine = async () =>
      (await get('/admin/outbox'))
        .json()
        .data.filter(({ owner_id }: { owner_id: string }) => owner_id === organizationId);
    expect(await mine()).toMatchObject([
      { id, workflow_id: 'send/msg_1', attempts: 200, last_error: 'no namespace' },
      { id: other },
    ]);
    expect((await post('/admin/outbox/retry', { id, note })).json()).toMatchObject({ retried: 1 });
    expect(await mine()).toMatchObject([{ id: other }]);
    expectProblem(await post('/admin/outbox/retry', { id, note }), 'not_found');
    expectProblem(await post('/admin/outbox/retry', { id: 'x', note }), 'validation_error');
    expectProblem(await post('/admin/outbox/retry', { id: '9'.repeat(19), note }), 'not_found');
    expect((await post('/admin/outbox/retry', { note })).json().retried).toBeGreaterThan(0);
    expect(await mine()).toEqual([]);
    const [entry] = (await app.call('/org/audit-log', { token })).json().data;
    expect(entry).toMatchObject({ action: 'outbox.retried', reason: note });
    await query(app.worker, sql`delete from outbox where org_id = ${organizationId} returning id`);
  });
});

describe('a paused schedule', () => {
  test('is unpaused by an admin, with the reason', async () => {
    const { commands, post, get, staff } = await arrange();
    const unpaused = await post('/admin/schedules/reconcile/unpause');
    expect([unpaused.statusCode, unpaused.json()]).toEqual([
      202,
      { object: 'schedule', id: 'reconcile', effect: 'unpaused' },
    ]);
    expect(commands()).toEqual([{ unpause: { scheduleId: 'reconcile', note } }]);
    expect((await get(`/admin/audit-log?staff_id=${staff.userId}`)).json().data).toMatchObject([
      { action: 'schedule.unpaused', reason: note, details: { paused_because: 'by ada' } },
    ]);
    expectProblem(await post('/admin/schedules/check-usage/unpause'), 'conflict');
    expectProblem(await post('/admin/schedules/unknown/unpause'), 'not_found');
    const support = await arrange('support');
    expectProblem(await support.post('/admin/schedules/reconcile/unpause'), 'permission_denied');
  });
});

describe('an ambiguous send', () => {
  test('shows what to compare with the log of the relay, without addresses', async () => {
    const workflowId = await arrangeAmbiguousSend(app.worker);
    const [message] = await query<{
      id: string;
      organizationId: string;
      rfcMessageId: string;
    }>(
      app.worker,
      sql`select id, org_id as "organizationId", rfc_message_id as "rfcMessageId" from messages
      where id = ${workflowId.replace('send/', '')}`,
    );
    const { organizationId = '' } = message ?? {};
    app.temporalRuns.add({
      workflowId,
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId, Stage: 'needs_attention' },
    });
    const { get, post } = await arrange('support');
    const id = encodeURIComponent(workflowId);
    const { evidence } = (await get(`/admin/workflows/${id}`)).json();
    expect(evidence).toMatchObject({
      message_id: message?.id,
      rfc_message_id: message?.rfcMessageId,
      recipients: [
        { recipient: 0, domain: 'people.example', ambiguous: false, attempt: 1 },
        { recipient: 1, domain: 'people.example', ambiguous: true, response: expect.stringMatching(/./) },
      ],
    });
    expect(JSON.stringify(evidence)).not.toMatch(/[ab]@people/);
    const body = { note, resolution: 'sent', recipient: 1 };
    expect((await post(`/admin/workflows/${id}/resolve`, body)).statusCode).toBe(202);
  });
});
