import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { advanceClock } from '../../dev/stripe-stand-in/billing-cycle.ts';
import { type MeterEvent, StandInError } from '../../dev/stripe-stand-in/ledger.ts';
import { isMetered } from '../../domain/billing/metered-counters.ts';
import { readBacklog } from '../../domain/monitoring/backlog.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';
import { createSystemSuspensionService } from '../../domain/suspensions/system-suspension.service.ts';
import { recordUsage } from '../../domain/usage/count-usage.ts';
import { createUsageCheckService } from '../../domain/usage-alerts/usage-check.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createStripe } from '../../platform/stripe/stripe-client.ts';
import { administerLimits } from '../support/limits.ts';
import type { TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

const HOUR_S = 3_600;
const DAY_S = 86_400;
/** Of `messages_sent` for the tier developer. */
const LIMIT = 10_000;

let app: BillingApp;
beforeAll(async () => {
  app = await startBillingApp({ STRIPE_METERED_PRICES: 'messages_sent:price_messages' });
});
afterAll(() => app.stop());
beforeEach(() => {
  app.standIn.intercept = () => undefined;
});

type Paying = Awaited<ReturnType<BillingApp['createPaying']>>;

/** Moves the clock to the start of the next hour that has at least 20 hours of its month after it, and before it. */
function moveToMidMonth(): void {
  const now = new Date(app.ledger.now * 1_000);
  const isNearEnd = new Date(now.getTime() + 2 * DAY_S * 1_000).getUTCMonth() !== now.getUTCMonth();
  if (isNearEnd) advanceClock(app.ledger, 4 * DAY_S);
  advanceClock(app.ledger, HOUR_S - (app.ledger.now % HOUR_S));
}

/** Metered from the hour on in which the test begins. */
async function createMetered(): Promise<Paying> {
  moveToMidMonth();
  return app.createPaying();
}

/** Counts use in the hour that begins now, and moves to the next one. */
async function use({ organizationId }: TestOrganization, amount: number): Promise<void> {
  const at = new Date((app.ledger.now + 60) * 1_000);
  await app.worker.systemTransaction(({ db }) =>
    recordUsage(db, { organizationId, counter: 'messages_sent', amount, at }),
  );
  advanceClock(app.ledger, HOUR_S);
}

const settle = () => app.work.meterSettlement.settle(() => undefined);
const report = () => app.work.meterReporting.report(() => undefined);
async function meter(): Promise<void> {
  // An hour counts as over five minutes after its end.
  const { now } = app.ledger;
  app.ledger.now += 360;
  await settle();
  await report();
  app.ledger.now = now;
}

const eventsOf = ({ subscription }: Paying): MeterEvent[] =>
  [...app.ledger.meterEvents.values()]
    .filter(({ customer }) => customer === subscription.customer)
    .sort((left, right) => left.timestamp - right.timestamp);
const unitsOf = (paying: Paying): number[] => eventsOf(paying).map(({ value }) => value);
const reportsOf = ({ organizationId }: TestOrganization) =>
  query<{ units: number; isReported: boolean; refusal: string | null }>(
    app.worker,
    sql`select units::int, reported_at is not null as "isReported", refusal from meter_reports
    where org_id = ${organizationId} order by window_start`,
  );

describe('use beyond a soft limit', () => {
  test('is reported once, for the hour in which it was used, and is on the next invoice', async () => {
    const paying = await createMetered();
    const first = app.ledger.now;
    const subscription = await app.call('/billing/subscription', { token: paying.token });
    expect(subscription.json().metered_counters).toEqual(['messages_sent']);
    await use(paying, LIMIT - 1_000);
    await use(paying, 1_500);
    await use(paying, 100);
    await meter();
    const expected = [
      { value: 500, timestamp: first + HOUR_S, event_name: 'messages_sent' },
      { value: 100, timestamp: first + 2 * HOUR_S, event_name: 'messages_sent' },
    ];
    expect(eventsOf(paying)).toMatchObject(expected);
    await meter();
    await Promise.all([settle(), settle(), report(), report()]);
    expect(eventsOf(paying)).toMatchObject(expected);
    const stripe = createStripe(app.config);
    const preview = await stripe.invoices.createPreview({ subscription: paying.subscription.id });
    expect(preview.amount_due).toBe(2_000 + 600);
  });

  test('of an hour that is not over waits for its end', async () => {
    const paying = await createMetered();
    await use(paying, LIMIT + 5);
    app.ledger.now += 240;
    await settle();
    await report();
    expect(unitsOf(paying)).toEqual([]);
    app.ledger.now -= 240;
    await meter();
    expect(unitsOf(paying)).toEqual([5]);
  });

  test('is not reported without a metered price, nor for the time before it', async () => {
    const paying = await createMetered();
    paying.subscription.meteredPrices = [];
    await app.work.syncs.sync(paying.subscription.id);
    const subscription = await app.call('/billing/subscription', { token: paying.token });
    expect(subscription.json().metered_counters).toEqual([]);
    await use(paying, LIMIT + 1_000);
    await meter();
    expect(unitsOf(paying)).toEqual([]);
    paying.subscription.meteredPrices = ['price_messages'];
    await app.work.syncs.sync(paying.subscription.id);
    await use(paying, 20);
    await meter();
    expect(unitsOf(paying)).toEqual([20]);
  });

  test('is not reported while staff override the limit, nor while the organization is suspended', async () => {
    const paying = await createMetered();
    const { organizationId } = paying;
    const limits = administerLimits({ database: app.worker });
    const startsNow = (table: 'limit_overrides' | 'suspensions') =>
      app.worker.db
        .updateTable(table)
        .set({ created_at: new Date(app.ledger.now * 1_000) })
        .where('org_id', '=', organizationId)
        .execute();
    await use(paying, LIMIT + 1);
    await limits.setOverride(organizationId, {
      resource: 'messages_sent',
      limit: LIMIT + 1,
      kind: 'soft',
      expiresAt: null,
      reason: 'Test',
    });
    await startsNow('limit_overrides');
    await query(
      app.worker,
      sql`update usage_events set at = ${new Date(app.ledger.now * 1_000)}
      where org_id = ${organizationId} and kind = 'override_set' returning id`,
    );
    await use(paying, 200);
    await limits.removeOverride(organizationId, 'messages_sent');
    await query(
      app.worker,
      sql`update usage_events set at = ${new Date(app.ledger.now * 1_000 - 1)}
      where org_id = ${organizationId} and kind = 'override_removed' returning id`,
    );
    await use(paying, 30);
    const { suspensions } = arrangeSuspensions(app.worker);
    const system = createSystemSuspensionService({ suspensions });
    const request = { reason: 'payment' as const, note: 'Test' };
    await app.worker.systemTransaction((transaction) => system.suspend(transaction, organizationId, request));
    await startsNow('suspensions');
    await use(paying, 4_000);
    await app.worker.systemTransaction((transaction) =>
      system.reinstate(transaction, organizationId, request),
    );
    await query(
      app.worker,
      sql`update suspensions set lifted_at = ${new Date(app.ledger.now * 1_000 - 1)}
      where org_id = ${organizationId} returning id`,
    );
    await use(paying, 7);
    await meter();
    expect(unitsOf(paying)).toEqual([1, 30, 7]);
  });

  test('is announced as billed by the email about the limit, and otherwise not', async () => {
    const paying = await createMetered();
    const unmetered = await createMetered();
    unmetered.subscription.meteredPrices = [];
    await app.work.syncs.sync(unmetered.subscription.id);
    const emails: string[] = [];
    for (const organization of [paying, unmetered]) {
      await use(organization, LIMIT);
      const { outbox } = recordingOutbox();
      const checks = createUsageCheckService({
        database: app.worker,
        events: createWebhookEvents({ outbox }),
        notifications: createNotificationService({ outbox }),
        isMetered,
        logger: pino({ level: 'silent' }),
        now: () => new Date(app.ledger.now * 1_000),
        pageSize: 1,
      });
      // Other organizations of the database belong to other tests.
      const stop = () => {
        throw new Error('stop');
      };
      const from = { after: organization.organizationId.slice(0, -1), organizations: 0, notified: 0 };
      await expect(checks.check({ from, onProgress: stop })).rejects.toThrow('stop');
      const [email] = await query<{ params: never }>(
        app.worker,
        sql`select params from notifications
        where org_id = ${organization.organizationId} and template = 'usage-exceeded'`,
      );
      if (!email) throw new Error('no email');
      emails.push(renderEmail(renderTemplate('usage-exceeded', email.params), app.config.PUBLIC_URL).text);
    }
    expect(emails[0]).toContain('nothing is rejected, and what is used beyond it is billed');
    expect(emails[1]).toContain('nothing is rejected.');
  });

  test('of a subscription that ends is reported up to its end', async () => {
    const paying = await createMetered();
    await use(paying, LIMIT + 9);
    await app.call('/billing/subscription/cancel', {
      method: 'POST',
      token: paying.token,
      body: { when: 'now' },
    });
    await app.follow(paying);
    await use(paying, 5_000);
    await meter();
    expect(unitsOf(paying)).toEqual([9]);
  });

  test('stays metered through a change of plan, now and at the end of the period', async () => {
    const paying = await createMetered();
    const change = (tier: string, when: string) =>
      app.call('/billing/subscription/change-plan', {
        method: 'POST',
        token: paying.token,
        body: { tier, when },
      });
    expect((await change('business', 'now')).json()).toMatchObject({ status: 'accepted' });
    await app.follow(paying);
    expect((await change('developer', 'period_end')).json()).toMatchObject({ status: 'accepted' });
    await app.follow(paying);
    const { json } = await app.call('/billing/subscription', { token: paying.token });
    expect(json()).toMatchObject({
      tier: 'business',
      scheduled_tier: 'developer',
      metered_counters: ['messages_sent'],
    });
  });
});

describe('a report of use', () => {
  test('that Stripe did not take in an outage is made up for, with the hours of the use', async () => {
    const paying = await createMetered();
    const first = app.ledger.now;
    await use(paying, LIMIT + 1);
    await use(paying, 2);
    app.ledger.now += 360;
    await settle();
    app.standIn.intercept = (operation) => {
      if (operation.startsWith('before')) throw new StandInError(500, 'down', { type: 'api_error' });
    };
    await expect(report()).rejects.toMatchObject({ code: 'unavailable' });
    expect(unitsOf(paying)).toEqual([]);
    app.standIn.intercept = () => undefined;
    app.ledger.now += 3 * DAY_S;
    await settle();
    await report();
    expect(eventsOf(paying)).toMatchObject([
      { value: 1, timestamp: first },
      { value: 2, timestamp: first + HOUR_S },
    ]);
  });

  test.each([
    ['shortly after it', 60],
    ['after Stripe has forgotten its identifier', 2 * DAY_S],
  ])('whose acceptance was lost in a crash is not counted again %s', async (_name, seconds) => {
    const paying = await createMetered();
    await use(paying, LIMIT + 3);
    app.ledger.now += 360;
    await settle();
    await report();
    await query(
      app.worker,
      sql`update meter_reports set reported_at = null where org_id = ${paying.organizationId} returning id`,
    );
    app.ledger.now += seconds;
    await report();
    expect(unitsOf(paying)).toEqual([3]);
    expect(await reportsOf(paying)).toEqual([{ units: 3, isReported: true, refusal: null }]);
  });

  test('that was sent long ago, and did not arrive, is sent again', async () => {
    const paying = await createMetered();
    await use(paying, LIMIT + 4);
    app.ledger.now += 360;
    await settle();
    app.standIn.intercept = (operation) => {
      if (operation.startsWith('before')) throw new StandInError(500, 'down', { type: 'api_error' });
    };
    await expect(report()).rejects.toMatchObject({ code: 'unavailable' });
    app.standIn.intercept = () => undefined;
    app.ledger.now += 2 * DAY_S;
    await report();
    expect(unitsOf(paying)).toEqual([4]);
  });

  test('that fails alone holds up no other, and is sent by the next run', async () => {
    const paying = await createMetered();
    const other = await app.createPaying();
    await app.worker.systemTransaction(({ db }) =>
      recordUsage(db, {
        organizationId: other.organizationId,
        counter: 'messages_sent',
        amount: LIMIT + 2,
        at: new Date((app.ledger.now + 60) * 1_000),
      }),
    );
    await use(paying, LIMIT + 1);
    app.standIn.intercept = (operation, id) => {
      if (operation.startsWith('before') && id.startsWith(paying.organizationId))
        throw new StandInError(500, 'down', { type: 'api_error' });
    };
    app.ledger.now += 360;
    await settle();
    await expect(report()).rejects.toMatchObject({ code: 'unavailable' });
    expect([unitsOf(paying), unitsOf(other)]).toEqual([[], [2]]);
    app.standIn.intercept = () => undefined;
    await report();
    expect([unitsOf(paying), unitsOf(other)]).toEqual([[1], [2]]);
  });

  test('that Stripe refuses is recorded as not billed, and holds up no other', async () => {
    const paying = await createMetered();
    const other = await app.createPaying();
    await use(paying, LIMIT + 6);
    await app.worker.systemTransaction(({ db }) =>
      recordUsage(db, {
        organizationId: other.organizationId,
        counter: 'messages_sent',
        amount: LIMIT + 7,
        at: new Date((app.ledger.now + 60) * 1_000),
      }),
    );
    advanceClock(app.ledger, HOUR_S);
    const customer = app.ledger.customers.get(paying.subscription.customer);
    if (customer) customer.deleted = true;
    await meter();
    expect(await reportsOf(paying)).toEqual([
      { units: 6, isReported: false, refusal: expect.stringContaining('No such customer') },
    ]);
    expect(unitsOf(other)).toEqual([7]);
    // What the alert UsageNotBilled counts, by real time.
    await query(
      app.worker,
      sql`update meter_reports set refused_at = now() where org_id = ${paying.organizationId} returning id`,
    );
    const backlog = await readBacklog(app.worker);
    expect(backlog.find(({ kind }) => kind === 'meter_report_refused')?.count).toBeGreaterThan(0);
  });

  test('is not made for use that is too old for Stripe', async () => {
    const paying = await createMetered();
    await use(paying, LIMIT + 8);
    advanceClock(app.ledger, 36 * DAY_S);
    await meter();
    expect(await reportsOf(paying)).toEqual([]);
  });
});
