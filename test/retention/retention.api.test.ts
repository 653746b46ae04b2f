import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { NotificationEntity } from '../../domain/notifications/notification.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createExpiredMailService } from '../../domain/retention/expired-mail.service.ts';
import { createRetentionService } from '../../domain/retention/retention.service.ts';
import { createRetentionPolicyService } from '../../domain/retention/retention-policy.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createAgedMail } from '../support/aged-mail.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useIsolatedDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

const DAY_MS = 86_400_000;
/** The policy is set on the first day at 15:00 UTC. */
const START = Date.parse('2026-12-08T15:00:00.000Z');

// The daily start reads every organization, dozens of times here.
const database = useIsolatedDatabase('retention');

/** An organization with a clock that the test controls. */
async function arrange() {
  const organization = await createOrganization(database);
  const { organizationId } = organization;
  const inbox = await createInbox(database, organization);
  const { outbox, commands } = recordingOutbox();
  let time = START;
  const now = () => new Date(time);
  const policies = createRetentionPolicyService({ database, outbox, now });
  const notifications = createNotificationService({ outbox });
  const retention = createRetentionService({ database, outbox, notifications, now });
  const expiredMail = createExpiredMailService({
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
    now,
    pause: async () => undefined,
  });
  const scope = testScope(organization);
  /** Performs the steps of one `applyRetention` run. */
  const run = async () => {
    const review = await retention.review(organizationId);
    const from = { messages: 0, threads: 0, cursor: null };
    const options = { from, limitMs: 3_600_000, isAborted: () => false, onProgress: () => undefined };
    const deleted = review.cutoff && (await expiredMail.deleteExpired(organizationId, options));
    return { ...review, deleted: deleted ? deleted.messages : 0 };
  };
  /** Simulates the daily runs at 03:00 UTC until a time; returns the days on which something was deleted. */
  const advanceTo = async (moment: string) => {
    const days: string[] = [];
    while (time < Date.parse(moment)) {
      const nextRun = Math.floor((time - 3 * 3_600_000) / DAY_MS + 1) * DAY_MS + 3 * 3_600_000;
      time = Math.min(nextRun, Date.parse(moment));
      if (time !== nextRun) break;
      if ((await startsToday()) && (await run()).deleted > 0) days.push(now().toISOString().slice(0, 10));
    }
    return days;
  };
  /** Whether the daily start includes this organization. */
  const startsToday = async () => {
    const before = commands.length;
    await retention.startDailyRuns(() => undefined);
    const workflowId = `retention/${organizationId}/${now().toISOString().slice(0, 10)}`;
    return commands.slice(before).some(({ start }) => start?.workflowId === workflowId);
  };
  const emails = () =>
    database.systemTransaction(async ({ db }) => {
      const rows = await db
        .selectFrom('notifications')
        .select(columnsOf(NotificationEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute();
      return rows.map(({ template, params }) => [
        template,
        params.days,
        params.firstDeletionAt ?? params.before,
      ]);
    });
  const setStatus = (status: 'active' | 'suspended') =>
    database.db.updateTable('organizations').set({ status }).where('id', '=', organizationId).execute();
  const setPolicy = (days: number) => policies.set(scope, organizationId, days);
  const postpone = (days: number) => policies.postpone(scope, organizationId, days);
  const createMessageOn = (day: string) => createAgedMail(database, inbox, { at: new Date(day) });
  const remainingDays = () =>
    database.systemTransaction(async ({ db }) => {
      const rows = await db
        .selectFrom('messages')
        .select(columnsOf(MessageEntity))
        .where('org_id', '=', organizationId)
        .orderBy('id')
        .execute();
      return rows.map(({ createdAt }) => createdAt.toISOString().slice(0, 10));
    });
  return {
    organizationId,
    commands,
    run,
    advanceTo,
    startsToday,
    emails,
    setStatus,
    setPolicy,
    postpone,
    createMessageOn,
    remainingDays,
    policies,
    scope,
  };
}

describe('a policy of 30 days', () => {
  test('warns, deletes daily from its start and sends a monthly reminder', async () => {
    const { setPolicy, run, advanceTo, emails, createMessageOn, remainingDays } = await arrange();
    await createMessageOn('2026-10-01');
    await createMessageOn('2026-11-20');
    await createMessageOn('2026-12-20');
    await setPolicy(30);
    expect(await run()).toEqual({ cutoff: null, warnings: 1, deleted: 0 });
    expect(await run()).toMatchObject({ warnings: 0 });
    expect(await advanceTo('2026-12-15T14:59:00Z')).toEqual([]);
    expect(await emails()).toEqual([
      ['retention-notice', 30, '2026-12-15 15:00 UTC'],
      ['retention-final-notice', 30, '2026-12-16 03:00 UTC'],
    ]);
    expect(await advanceTo('2026-12-20T00:00:00Z')).toEqual(['2026-12-16']);
    expect(await remainingDays()).toEqual(['2026-11-20', '2026-12-20']);
    expect(await advanceTo('2027-04-20T00:00:00Z')).toEqual(['2026-12-20', '2027-01-19']);
    expect(await remainingDays()).toEqual([]);
    // In January messages are about to be deleted; after that none are left.
    expect((await emails()).slice(2)).toEqual([['retention-reminder', 30, '2027-01-02 03:00 UTC']]);
  });

  test('stops while postponed and warns the owners before it resumes', async () => {
    const {
      setPolicy,
      run,
      advanceTo,
      postpone,
      emails,
      createMessageOn,
      remainingDays,
      policies,
      scope,
      organizationId,
    } = await arrange();
    await createMessageOn('2026-10-01');
    await setPolicy(30);
    await run();
    await advanceTo('2026-12-15T10:00:00Z');
    await postpone(10);
    expect(await policies.get(scope, organizationId)).toMatchObject({
      effectiveDays: 0,
      firstDeletionAt: new Date('2026-12-25T15:00:00Z'),
    });
    expect(await advanceTo('2026-12-25T14:00:00Z')).toEqual([]);
    expect((await emails()).slice(2)).toEqual([['retention-final-notice', 30, '2026-12-26 03:00 UTC']]);
    expect(await advanceTo('2026-12-28T00:00:00Z')).toEqual(['2026-12-26']);
    await createMessageOn('2026-10-02');
    await postpone(1);
    expect(await advanceTo('2026-12-28T23:00:00Z')).toEqual([]);
    expect(await remainingDays()).toEqual(['2026-10-02']);
    expect(await advanceTo('2026-12-31T00:00:00Z')).toEqual(['2026-12-29']);
  });

  test('reverted and set again is announced once on the same day, and again on a later day', async () => {
    const { organizationId, setPolicy, run, advanceTo, emails } = await arrange();
    const countNotices = async () =>
      (await emails()).filter(([template]) => template === 'retention-notice').length;
    for (const days of [30, 0, 30, 0, 30]) {
      await setPolicy(days);
      await run();
    }
    expect(await countNotices()).toBe(1);
    await setPolicy(0);
    await advanceTo('2026-12-10T12:00:00Z');
    // Like an operator's change: the row's version restarts.
    await query(database, sql`delete from retention_policies where org_id = ${organizationId}`);
    await setPolicy(30);
    await run();
    expect(await countNotices()).toBe(2);
  });

  test('starts no run on a day without work', async () => {
    const { setPolicy, run, advanceTo, startsToday, createMessageOn } = await arrange();
    expect(await startsToday()).toBe(false);
    await setPolicy(30);
    expect(await startsToday()).toBe(true);
    await run();
    await advanceTo('2026-12-20T00:00:00Z');
    expect(await startsToday()).toBe(false);
    await createMessageOn('2026-10-01');
    expect(await startsToday()).toBe(true);
  });

  test('neither warns nor deletes while the organization is suspended', async () => {
    const { setPolicy, run, advanceTo, emails, setStatus, createMessageOn, remainingDays } = await arrange();
    await createMessageOn('2026-10-01');
    await setPolicy(30);
    await setStatus('suspended');
    expect(await run()).toEqual({ cutoff: null, warnings: 0, deleted: 0 });
    expect(await advanceTo('2026-12-30T00:00:00Z')).toEqual([]);
    expect([await emails(), await remainingDays()]).toEqual([[], ['2026-10-01']]);
  });

  test.each([
    ['had begun deletion', '2026-12-17T00:00:00Z'],
    ['had warned its owners that deletion begins the next day', '2026-12-15T10:00:00Z'],
  ])('that %s before the organization was suspended warns again', async (_name, suspendedAt) => {
    const { setPolicy, run, advanceTo, emails, setStatus, createMessageOn, remainingDays } = await arrange();
    await setPolicy(30);
    await run();
    await advanceTo(suspendedAt);
    await createMessageOn('2026-12-01');
    await setStatus('suspended');
    const before = await emails();
    expect(await advanceTo('2027-02-10T10:00:00Z')).toEqual([]);
    expect(await emails()).toEqual(before);
    await setStatus('active');
    expect(await advanceTo('2027-02-12T02:00:00Z')).toEqual([]);
    expect((await emails()).slice(before.length)).toContainEqual([
      'retention-final-notice',
      30,
      '2027-02-12 03:00 UTC',
    ]);
    expect(await remainingDays()).toEqual(['2026-12-01']);
    expect(await advanceTo('2027-02-12T10:00:00Z')).toEqual(['2027-02-12']);
  });
});

test('the daily start includes every organization once across pages', async () => {
  const { organizationId, setPolicy, startsToday, commands } = await arrange();
  await setPolicy(30);
  const others = Array.from({ length: 230 }, (_, n) => `${organizationId}${String(n).padStart(3, '0')}`);
  await database.systemTransaction(async ({ db }) => {
    for (const id of others) {
      await query(
        { db },
        sql`insert into organizations (id, name, slug, created_at, updated_at) values (${id}, 'Other', ${id}, now(), now())`,
      );
      await query(
        { db },
        sql`insert into retention_policies (org_id, retention_days, steps, changed_at, created_at)
         values (${id}, 30, '[{"version":1,"days":30,"takesEffectAt":"2027-01-01T00:00:00.000Z","announcedAt":null,"warnedAt":null}]', now(), now())`,
      );
    }
  });
  const before = commands.length;
  expect(await startsToday()).toBe(true);
  const started = commands.slice(before).map(({ start }) => start?.workflowId);
  for (const id of others)
    expect(started.filter((run) => run === `retention/${id}/2026-12-08`)).toHaveLength(1);
  await query(database, sql`delete from organizations where id like ${`${organizationId}_%`}`);
});
