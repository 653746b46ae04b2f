import { sql } from 'kysely';
import { pino } from 'pino';
import { createBillingActivities } from '../../activities/billing.activities.ts';
import { advanceClock, completeCheckout } from '../../dev/stripe-stand-in/billing-cycle.ts';
import type { Card, Invoice, StripeEventRecord, Subscription } from '../../dev/stripe-stand-in/ledger.ts';
import { STAND_IN_PRICES, signEvent, startStripeStandIn } from '../../dev/stripe-stand-in/stand-in.ts';
import { createBillingWork } from '../../domain/billing/billing-services.ts';
import { requestStaleReadBacks } from '../../domain/billing/overdue-billing.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createNotifySuspension } from '../../domain/notifications/notify-suspension.ts';
import { createSuspensionService } from '../../domain/suspensions/suspension.service.ts';
import type { Config } from '../../platform/config.ts';
import { billingConfig, WEBHOOK_SECRET } from '../support/billing-config.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { recordingOutbox, startTestApp } from '../support/test-app.ts';

const DAY_S = 86_400;

export type BillingApp = Awaited<ReturnType<typeof startBillingApp>>;

/** The API with billing, the stand-in for Stripe, and what the runs would do, on the stand-in's clock. */
export async function startBillingApp(config: Partial<Record<keyof Config, string>> = {}) {
  const standIn = await startStripeStandIn({
    port: 0,
    prices: [...STAND_IN_PRICES, { id: 'price_euro', unit_amount: 1_900, currency: 'eur' }],
  });
  const { ledger } = standIn;
  const app = await startTestApp({ config: { ...billingConfig(standIn.url), ...config } });
  const { outbox, commands: workCommands } = recordingOutbox();
  const notifications = createNotificationService({ outbox });
  const now = () => new Date(ledger.now * 1_000);
  const createWork = (clock: () => Date) =>
    createBillingWork({
      config: app.config,
      database: app.worker,
      outbox,
      logger: pino({ level: 'silent' }),
      notifications,
      suspensions: createSuspensionService({ outbox, onChange: createNotifySuspension(notifications) }),
      now: clock,
    });
  const work = createWork(now);
  const activities = createBillingActivities({
    database: app.worker,
    ...work,
    requestStaleReadBacks: (onProgress) =>
      requestStaleReadBacks({ database: app.worker, outbox }, onProgress),
  });

  const deliver = (
    event: StripeEventRecord,
    {
      secret = WEBHOOK_SECRET,
      body = JSON.stringify(event),
      signature = signEvent(JSON.stringify(event), secret),
      from,
    }: { secret?: string; body?: string; signature?: string; from?: string } = {},
  ) =>
    app.call('/billing/webhook', {
      method: 'POST',
      prefix: '',
      raw: body,
      headers: {
        'content-type': 'application/json',
        'stripe-signature': signature,
        ...(from === undefined ? {} : { 'x-forwarded-for': from }),
      },
    });

  /** Does what the runs of the open subscriptions and graces of the organization would do now. */
  async function settle({ organizationId }: TestOrganization): Promise<void> {
    const requested = await query<{ id: string }>(
      app.worker,
      sql`select id from billing_subscriptions where org_id = ${organizationId} and requested_at is not null order by id`,
    );
    for (const { id } of requested) await work.syncs.sync(id);
    for (const { id } of await openGraces(organizationId)) await work.syncs.reviewGrace(id);
  }

  const openGraces = (organizationId: string) =>
    query<{ id: string }>(
      app.worker,
      sql`select id from payment_graces where org_id = ${organizationId} and closed_at is null`,
    );

  return {
    ...app,
    standIn,
    ledger,
    work,
    createWork,
    workCommands,
    activities,
    deliver,
    settle,

    /** Delivers what Stripe has sent since the last call, and lets the runs work. */
    async follow(organization: TestOrganization): Promise<void> {
      for (const event of ledger.events.splice(0)) {
        const response = await deliver(event);
        if (response.statusCode !== 200) throw new Error(`${event.type}: ${response.body}`);
      }
      await settle(organization);
    },

    /** Moves Stripe's clock, day by day, and lets the events and the runs follow. */
    async advanceDays(organization: TestOrganization, days: number): Promise<void> {
      for (let day = 0; day < days; day += 1) {
        advanceClock(ledger, DAY_S);
        await this.follow(organization);
      }
    },

    async createFree(): Promise<TestOrganization> {
      const organization = await createOrganization(app.worker);
      await query(
        app.worker,
        sql`update organizations set tier = 'free' where id = ${organization.organizationId}`,
      );
      return organization;
    },

    /** A new organization with a subscription, paid by a card that works. */
    async createPaying(
      tier: 'developer' | 'business' = 'developer',
    ): Promise<TestOrganization & { subscription: Subscription }> {
      const organization = await this.createFree();
      const session = await this.startCheckout(organization, tier);
      this.pay(session.json().id, 'works');
      await this.follow(organization);
      return { ...organization, subscription: this.subscriptionOf(organization) };
    },

    startCheckout: (organization: TestOrganization, tier = 'developer', more: object = {}) =>
      app.call('/billing/checkout', {
        method: 'POST',
        token: organization.token,
        body: {
          tier,
          success_url: `${app.config.PUBLIC_URL}/billing`,
          cancel_url: `${app.config.PUBLIC_URL}/billing`,
          ...more,
        },
      }),

    pay(sessionId: string, card: Card): boolean {
      const session = ledger.sessions.get(sessionId);
      const customer = ledger.customers.get(session?.customer ?? '');
      if (!session || !customer) throw new Error(`no session ${sessionId}`);
      customer.card = card;
      return completeCheckout(ledger, session);
    },

    setCard(subscription: Subscription, card: Card): void {
      const customer = ledger.customers.get(subscription.customer);
      if (customer) customer.card = card;
    },

    subscriptionOf({ organizationId }: Pick<TestOrganization, 'organizationId'>): Subscription {
      const found = [...ledger.subscriptions.values()].findLast(
        ({ customer }) => ledger.customers.get(customer)?.metadata.organization_id === organizationId,
      );
      if (!found) throw new Error('no subscription');
      return found;
    },

    invoicesOf: ({ id }: Subscription, status: Invoice['status']): Invoice[] =>
      [...ledger.invoices.values()].filter(
        (invoice) => invoice.subscription === id && invoice.status === status,
      ),

    async stateOf({ organizationId }: Pick<TestOrganization, 'organizationId'>) {
      const [row] = await query<{
        tier: string;
        status: string;
        subscription: string | null;
        grace: string | null;
      }>(
        app.worker,
        sql`select o.tier, o.status,
             (select s.status from billing_subscriptions s where s.org_id = o.id order by s.ended_at is null desc, created_at desc limit 1) as subscription,
             (select g.status from payment_graces g where g.org_id = o.id order by g.started_at desc, g.id desc limit 1) as grace
           from organizations o where o.id = ${organizationId}`,
      );
      return row;
    },

    emailsOf: async ({ organizationId }: Pick<TestOrganization, 'organizationId'>) =>
      (
        await query<{ template: string }>(
          app.worker,
          sql`select template from notifications where org_id = ${organizationId} order by created_at, id`,
        )
      ).map(({ template }) => template),

    async stop() {
      await app.close();
      await standIn.close();
    },
  };
}
