import { beforeAll, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { NotificationEntity } from '../../domain/notifications/notification.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import type { UsageCounter } from '../../domain/usage/counters.ts';
import { closePeriod, monthOf } from '../../domain/usage/periods.ts';
import { purgeUsage } from '../../domain/usage/usage-history.ts';
import { purgeUsageAlerts } from '../../domain/usage-alerts/purge-usage-alerts.ts';
import { createUsageCheckService } from '../../domain/usage-alerts/usage-check.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { untilBlocking } from '../support/until-blocking.ts';

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

/** Checks start at this organization; others in the database belong to other tests. */
async function arrange(resource: UsageCounter = 'messages_sent', kind: 'soft' | 'hard' = 'soft') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token, ownerId } = organization;
  const { outbox, commands } = recordingOutbox();
  let now = new Date();
  const service = () =>
    createUsageCheckService({
      database: app.worker,
      events: createWebhookEvents({ outbox }),
      notifications: createNotificationService({ outbox }),
      logger: pino({ level: 'silent' }),
      now: () => now,
    });
  // Starts right before this organization. Newer organizations, also of other test files, are checked too.
  const check = () =>
    service().check({ from: { after: organizationId.slice(0, -1), organizations: 0, notified: 0 } });
  const use = (amount: number, at = now) =>
    query(
      app.worker,
      sql`insert into usage_deltas (org_id, counter, at, amount) values (${organizationId}, ${resource}, ${at.toISOString()}, ${amount})`,
    );
  const allow = (limit: number) => setLimit(limits, organizationId, { resource, limit, kind });
  await allow(1_000);
  const { db } = app.worker;
  const rows = async () => ({
    events: (
      await db
        .selectFrom('events')
        .select(columnsOf(EventEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute()
    ).map(({ type, data, environmentId }) => ({ type, data, environmentId })),
    emails: (
      await db
        .selectFrom('notifications')
        .select(columnsOf(NotificationEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute()
    ).map(({ template, params, userId }) => ({ template, params, userId })),
  });
  return {
    organization,
    organizationId,
    token,
    ownerId,
    notices: () =>
      commands.filter(
        ({ start }) =>
          start?.workflowType === 'sendNotification' && start.searchAttributes.OrgId === organizationId,
      ),
    check,
    use,
    allow,
    rows,
    setNow: (time: Date) => {
      now = time;
    },
  };
}

test('notifies each threshold once a month with an event, an email to the owners and a ledger entry', async () => {
  const { organization, token, ownerId, notices, check, use, rows } = await arrange();
  await use(799);
  await check();
  expect(await rows()).toEqual({ events: [], emails: [] });
  await use(1);
  await Promise.all([check(), check()]);
  await check();
  const warned = await rows();
  expect(warned.events).toEqual([
    {
      type: 'usage.warning',
      environmentId: organization.productionEnvironmentId,
      data: {
        counter: 'messages_sent',
        current: 800,
        limit: 1_000,
        percentage: 80,
        threshold: 80,
        period_start: expect.stringMatching(/-01T00:00:00\.000Z$/),
        period_end: expect.stringMatching(/-01T00:00:00\.000Z$/),
      },
    },
  ]);
  expect(warned.emails).toMatchObject([
    { template: 'usage-warning', userId: ownerId, params: { counter: 'messages_sent', current: 800 } },
  ]);
  await use(300);
  await Promise.all([check(), check(), check()]);
  const exceeded = await rows();
  // A soft limit refuses nothing, so it is not exceeded.
  expect(exceeded.events.map(({ type }) => type)).toEqual(['usage.warning', 'usage.warning']);
  expect(exceeded.events[1]?.data).toMatchObject({ current: 1_100, percentage: 110, threshold: 100 });
  expect(exceeded.emails.map(({ template }) => template)).toEqual(['usage-warning', 'usage-exceeded']);
  expect(notices()).toHaveLength(2);
  const ledger = await app.call('/org/usage/events?type=threshold_crossed', { token });
  expect(ledger.json().data).toMatchObject([
    { counter: 'messages_sent', actor: 'system', data: { threshold: 100, current: 1_100 } },
    { counter: 'messages_sent', actor: 'system', data: { threshold: 80, current: 800 } },
  ]);
});

test('emits both events but sends one email if both thresholds are crossed between two checks', async () => {
  const { check, use, rows } = await arrange('api_calls', 'hard');
  await use(5_000);
  await check();
  const { events, emails } = await rows();
  expect(events.map(({ type }) => type)).toEqual(['usage.warning', 'usage.exceeded']);
  expect(emails).toMatchObject([{ template: 'usage-exceeded', params: { kind: 'hard' } }]);
});

test('uses a custom threshold, notifies again in a new month and closes the previous one', async () => {
  const { token, check, use, rows, setNow } = await arrange();
  await app.call('/org/limits', {
    method: 'PUT',
    token,
    body: { counters: { messages_sent: { warning_threshold: 50 } } },
  });
  setNow(new Date('2031-03-31T20:00:00Z'));
  await use(500);
  await check();
  expect((await rows()).events).toMatchObject([{ type: 'usage.warning', data: { threshold: 50 } }]);
  setNow(new Date('2031-04-01T01:00:00Z'));
  await Promise.all([check(), check()]);
  expect((await rows()).events).toHaveLength(1);
  const closed = (await app.call('/org/usage/events?type=period_closed', { token })).json().data;
  expect(closed).toMatchObject([
    {
      id: expect.stringMatching(/^uev_/),
      counter: null,
      data: { period_start: '2031-03-01T00:00:00.000Z', amounts: { messages_sent: 500 } },
    },
  ]);
  expect(closed).toHaveLength(1);
  await use(600);
  await check();
  expect((await rows()).events).toMatchObject([{}, { data: { period_start: '2031-04-01T00:00:00.000Z' } }]);
});

test('notifies usage from the last minutes of a month and includes it in the month’s sum', async () => {
  const { organizationId, token, check, use, rows, setNow } = await arrange();
  const lastMinute = new Date('2031-05-31T23:59:30Z');
  setNow(lastMinute);
  await use(700);
  await check();
  setNow(new Date('2031-06-01T00:00:00Z'));
  await use(400, lastMinute);
  await check();
  await check();
  const period = { period_start: '2031-05-01T00:00:00.000Z', period_end: '2031-06-01T00:00:00.000Z' };
  expect((await rows()).events).toMatchObject([
    { type: 'usage.warning', data: { current: 1_100, ...period } },
    { type: 'usage.warning', data: { current: 1_100, threshold: 100, ...period } },
  ]);
  expect((await rows()).emails).toMatchObject([{ params: { resetsAt: '2031-06-01' } }]);
  const closed = async () => (await app.call('/org/usage/events?type=period_closed', { token })).json().data;
  expect(await closed()).toEqual([]);
  // The lock keeps it a delta while the month is closed.
  setNow(new Date('2031-06-01T01:00:00Z'));
  await use(1, lastMinute);
  await app.worker.systemTransaction(async ({ db }) => {
    await query({ db }, sql`select from usage_deltas where org_id = ${organizationId} for update`);
    await check();
  });
  expect(await closed()).toMatchObject([{ data: { ...period, amounts: { messages_sent: 1_101 } } }]);
});

test('closes the month of the others when an organization is deleted meanwhile', async () => {
  const [deleted, other] = [await arrange(), await arrange()];
  const lastMonth = new Date('2031-07-15T00:00:00Z');
  for (const { use } of [deleted, other]) await use(5, lastMonth);
  await applyUsageDeltas(app.worker);
  const ids = [deleted.organizationId, other.organizationId];
  let closing: Promise<void> | undefined;
  await app.worker.systemTransaction(async (deletion) => {
    await query(deletion, sql`delete from organizations where id = ${deleted.organizationId}`);
    closing = closePeriod(app.worker.db, ids, monthOf(lastMonth), new Date('2031-08-01T02:00:00Z'));
    await untilBlocking(deletion);
  });
  await closing;
  expect(
    await query(
      app.worker,
      sql`select org_id, kind, data from usage_events where org_id = any (${ids})
      and kind = 'period_closed'`,
    ),
  ).toMatchObject([{ org_id: other.organizationId, data: { amounts: { messages_sent: 5 } } }]);
});

test('notifies storage once a month, too', async () => {
  const { check, use, rows, setNow } = await arrange('storage_bytes');
  setNow(new Date('2031-03-31T20:00:00Z'));
  await use(900);
  await check();
  await check();
  setNow(new Date('2031-04-01T00:00:00Z'));
  await check();
  await check();
  const { events, emails } = await rows();
  expect(events.map(({ data }) => (data as { period_start: string }).period_start)).toEqual([
    '2031-03-01T00:00:00.000Z',
    '2031-04-01T00:00:00.000Z',
  ]);
  expect(emails).toMatchObject([{ params: { resetsAt: null } }, { params: { resetsAt: null } }]);
});

test('rolls back a failed notification, continues with other organizations and retries on the next check', async () => {
  const [broken, other] = [await arrange(), await arrange()];
  await broken.use(900);
  await other.use(900);
  const { outbox } = recordingOutbox();
  const real = createNotificationService({ outbox });
  const failing = createUsageCheckService({
    database: app.worker,
    events: createWebhookEvents({ outbox }),
    logger: pino({ level: 'silent' }),
    notifications: {
      notifyOwners: (transaction, notice) =>
        notice.organizationId === broken.organizationId
          ? Promise.reject(new Error('Notification failed'))
          : real.notifyOwners(transaction, notice),
    },
  });
  const from = { after: broken.organizationId.slice(0, -1), organizations: 0, notified: 0 };
  expect(await failing.check({ from })).toMatchObject({ failed: 1 });
  expect(await broken.rows()).toEqual({ events: [], emails: [] });
  expect(await other.rows()).toMatchObject({ events: [{ type: 'usage.warning' }], emails: [{}] });
  await broken.check();
  expect(await broken.rows()).toMatchObject({ events: [{ type: 'usage.warning' }], emails: [{}] });
});

test('continues page by page and reports its progress', async () => {
  const { organizationId } = await arrange();
  await arrange();
  const { outbox } = recordingOutbox();
  const checks = createUsageCheckService({
    database: app.worker,
    events: createWebhookEvents({ outbox }),
    notifications: createNotificationService({ outbox }),
    logger: pino({ level: 'silent' }),
    pageSize: 1,
  });
  const seen: string[] = [];
  const from = { after: organizationId.slice(0, -1), organizations: 0, notified: 0 };
  const result = await checks.check({ from, onProgress: ({ after }) => void seen.push(after) });
  expect(seen[0]).toBe(organizationId);
  expect(result.organizations).toBeGreaterThanOrEqual(2);
});

test('purges hours, ledger entries and alerts after 400 days and keeps months', async () => {
  const { organizationId, token, use, check } = await arrange();
  const long = new Date(Date.now() - 401 * 86_400_000);
  await use(5, long);
  await use(900);
  await check();
  await query(
    app.worker,
    sql`update usage_events set at = ${long.toISOString()} where org_id = ${organizationId} and kind = 'override_set'`,
  );
  await purgeUsage(app.worker);
  await purgeUsageAlerts(app.worker);
  const [left] = await query<{ hours: number; months: number; alerts: number }>(
    app.worker,
    sql`select (select count(*)::int from usage_hours where org_id = ${organizationId}) as hours,
       (select count(*)::int from usage_counters where org_id = ${organizationId}) as months,
       (select count(*)::int from usage_alerts where org_id = ${organizationId}) as alerts`,
  );
  expect(left).toEqual({ hours: 1, months: 2, alerts: 1 });
  const kinds = (await app.call('/org/usage/events', { token }))
    .json()
    .data.map(({ type }: { type: string }) => type);
  expect(kinds.filter((kind: string) => kind !== 'hourly_sum')).toEqual(['threshold_crossed']);
});
