import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { Scope } from '../../domain/identity/scope.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createBulkJobService } from '../../domain/webhooks/bulk-job.service.ts';
import { createBulkJobRunner } from '../../domain/webhooks/bulk-job-runner.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestUser } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

const app = useTestApp();
/** More than one batch. */
const EVENTS = 210;

async function arrange(status = 'exhausted') {
  const organization = await createOrganization(app.worker);
  const { organizationId, productionEnvironmentId: environmentId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  const body = { url: 'https://receiver.example.test/hook', events: ['message.sent'] };
  const endpoint = await app.call('/webhooks/endpoints', { method: 'POST', token, body });
  const recorded = recordingOutbox();
  const events = createWebhookEvents(recorded);
  await app.worker.systemTransaction(async (transaction) => {
    for (let count = 0; count < EVENTS; count += 1)
      await events.record(transaction, {
        organizationId,
        environmentId,
        inboxId: inbox.id,
        type: 'message.sent',
        data: buildSampleData('message.sent', { inboxId: inbox.id, time: new Date() }),
      });
  });
  await query(
    app.worker,
    sql`update webhook_deliveries set status = ${status}, completed_at = now() where org_id = ${organizationId} returning id`,
  );
  const jobs = createBulkJobService({ database: app.worker, outbox: recorded.outbox });
  const runnerWith = (betweenBatches: () => Promise<void> = async () => undefined) =>
    createBulkJobRunner({
      database: app.worker,
      outbox: { ...recorded.outbox, drain: betweenBatches },
      notifications: createNotificationService(recorded),
    });
  return {
    organization,
    inbox,
    jobs,
    runnerWith,
    endpointId: endpoint.json<{ id: string }>().id,
    replayAs: (scope: Scope) =>
      jobs.replay(scope, endpoint.json<{ id: string }>().id, { since: new Date(Date.now() - 3_600_000) }),
    read: async (jobId: string) =>
      (await app.call(`/webhooks/jobs/${jobId}`, { token })).json<Record<string, unknown>>(),
    refusals: () =>
      query<{ details: object }>(
        app.worker,
        sql`select details from audit_entries where org_id = ${organizationId} and action = 'webhook_job.refused'`,
      ),
    emails: () =>
      query(
        app.worker,
        sql`select id from notifications where org_id = ${organizationId} and template = 'act-refused'`,
      ),
  };
}

const KEY_ENDS = {
  key_revoked: sql`revoked_at = now()`,
  key_expired: sql`expires_at = date_trunc('milliseconds', now())`,
  permission_lost: sql`permissions = array_remove(permissions, 'webhooks:manage')`,
  out_of_reach: sql`env_id = (select e.id from environments e where e.org_id = api_keys.org_id and e.kind = 'sandbox')`,
};

test.each(Object.entries(KEY_ENDS))(
  'a replay stops between two batches if its key may no longer do it: %s',
  async (problem, set) => {
    const { organization, replayAs, runnerWith, read, refusals, emails } = await arrange();
    const { keyId } = await createKey(app.worker, organization);
    const job = await replayAs({ ...testScope(organization), actor: { kind: 'api_key', id: keyId } });
    const runner = runnerWith(async () => {
      await query(app.worker, sql`update api_keys set ${set} where id = ${keyId} returning id`);
    });
    expect(await runner.run(job.id, () => undefined)).toBe('stopped: 200 deliveries');
    expect(await read(job.id)).toMatchObject({ status: 'stopped', detail: 'requester_not_allowed' });
    expect(await refusals()).toEqual([{ details: { refused: 'webhook_job', actor: keyId, problem } }]);
    expect(await emails()).not.toEqual([]);
  },
);

test('a replay by staff stops once they are no admin any more', async () => {
  const { organization, replayAs, runnerWith, read, refusals } = await arrange();
  const { userId } = await createStaff(app);
  const job = await replayAs({ ...testScope(organization), actor: { kind: 'staff', id: userId } });
  const runner = runnerWith(async () => {
    await query(
      app.worker,
      sql`update staff_members set role = 'support' where user_id = ${userId} returning user_id`,
    );
  });
  expect(await runner.run(job.id, () => undefined)).toBe('stopped: 200 deliveries');
  expect(await read(job.id)).toMatchObject({ status: 'stopped', detail: 'requester_not_allowed' });
  expect(await refusals()).toMatchObject([{ details: { actor: userId, problem: 'permission_lost' } }]);
});

test('a cancellation by a person who was removed cancels nothing', async () => {
  const { organization, endpointId, jobs, runnerWith, read } = await arrange('pending');
  const userId = await createTestUser(app.worker, { ...organization, role: 'developer' });
  const scope: Scope = { ...testScope(organization), actor: { kind: 'user', id: userId } };
  const job = await jobs.cancelPending(scope, endpointId);
  await query(app.worker, sql`delete from members where user_id = ${userId} returning user_id`);
  expect(await runnerWith().run(job.id, () => undefined)).toBe('stopped: 0 deliveries');
  expect(await read(job.id)).toMatchObject({ status: 'stopped', detail: 'requester_not_allowed' });
});

test('a key that is bound to the one inbox of the endpoint replays to it', async () => {
  const { organization, inbox, endpointId, replayAs, runnerWith } = await arrange();
  const { productionEnvironmentId: environmentId } = organization;
  const { keyId } = await createKey(app.worker, { ...organization, environmentId, inboxId: inbox.id });
  await query(
    app.worker,
    sql`update webhook_endpoints set inbox_ids = array[${inbox.id}]::text[] where id = ${endpointId} returning id`,
  );
  const job = await replayAs({ ...testScope(organization), actor: { kind: 'api_key', id: keyId } });
  expect(await runnerWith().run(job.id, () => undefined)).toBe(`completed: ${EVENTS} deliveries`);
});
