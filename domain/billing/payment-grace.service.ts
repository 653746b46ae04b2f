import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { findRow, type Row } from '../../platform/database/find-rows.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { SystemSuspensionService } from '../suspensions/system-suspension.service.ts';
import { buildGraceStart, enqueueGraceWake } from './billing-starts.ts';
import { countPassedReminders, type GraceStep, isPaymentOverdue, planGraceStep } from './grace-plan.ts';
import { type GraceStatus, type PaymentGrace, PaymentGraceEntity } from './payment-grace.entity.ts';
import type { SubscriptionView } from './read-subscription.ts';
import { recordBillingAudit } from './record-billing-audit.ts';

const DAY_MS = 86_400_000;

export interface PaymentGraceOptions {
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  suspensions: SystemSuspensionService;
  graceDays: number;
}

/** All run in the caller's transaction, which holds the lock of the organization's billing. */
export interface PaymentGraceService {
  /** Opens, continues or closes the grace of the subscription, as what was read back from Stripe demands. */
  follow(
    transaction: Transaction,
    change: { organizationId: string; view: SubscriptionView; isPaidOtherwise: boolean; now: Date },
  ): Promise<void>;
  /**
   * Moves the suspension, and ends one that is in force. The caller audits it.
   *
   * @returns the grace, with the day of suspension; null if it is closed.
   */
  extend(
    transaction: Transaction,
    change: { graceId: string; days: number; now: Date },
  ): Promise<ExtendedGrace | null>;
  /** {@link extend}, by a signal to the run: the log does not know which operator sent it. */
  extendBySignal(
    transaction: Transaction,
    change: { graceId: string; days: number; now: Date },
  ): Promise<void>;
}

export type ExtendedGrace = Pick<PaymentGrace, 'organizationId' | 'subscriptionId' | 'suspendAt'>;

export function createPaymentGraceService(options: PaymentGraceOptions): PaymentGraceService {
  const { outbox, suspensions } = options;
  const service: PaymentGraceService = {
    async follow(transaction, { organizationId, ...standing }) {
      const { view, isPaidOtherwise } = standing;
      const grace = await lockOpenGrace(transaction.em, view.id);
      if (grace) return takeStep(options, transaction, { grace, ...standing });
      if (isPaymentOverdue(view) && !isPaidOtherwise)
        await open(options, transaction, { organizationId, ...standing });
    },

    async extend(transaction, { graceId, days, now }) {
      const { em } = transaction;
      await em.execute(sql`select from payment_graces where id = ${graceId} for no key update`);
      const grace = await findRow(em, PaymentGraceEntity, { where: { id: graceId } });
      if (!grace || grace.closedAt) return null;
      // A test clock may be ahead.
      const since = grace.status === 'suspended' ? grace.suspendedAt : grace.suspendAt;
      const from = new Date(Math.max(now.getTime(), since?.getTime() ?? 0));
      const suspendAt = new Date(from.getTime() + days * DAY_MS);
      const remindersSent = countPassedReminders({ ...grace, status: 'waiting', suspendAt }, now);
      await em.execute(sql`
        update payment_graces set status = 'waiting', suspend_at = ${suspendAt}, suspended_at = null,
          reminders_sent = ${remindersSent}, next_step_at = ${now} where id = ${graceId}`);
      if (grace.suspendedAt)
        await suspensions.reinstate(transaction, grace.organizationId, {
          reason: 'payment',
          note: `The time to pay was extended until ${formatUtc(suspendAt)}.`,
        });
      enqueueGraceWake(transaction, outbox, grace);
      return { ...grace, suspendAt };
    },

    async extendBySignal(transaction, change) {
      const extended = await service.extend(transaction, change);
      if (!extended) return;
      await recordBillingAudit(transaction, {
        ...auditOf('extended', extended),
        reason: 'An operator sent the signal extendGrace.',
        details: { days: change.days, suspend_at: extended.suspendAt.toISOString() },
      });
    },
  };
  return service;
}

/** Locks it, so that a step and an extension at the same time do not undo each other. */
async function lockOpenGrace(
  em: EntityManager,
  subscriptionId: string,
): Promise<Row<PaymentGrace> | undefined> {
  await em.execute(sql`
    select from payment_graces where subscription_id = ${subscriptionId} and closed_at is null for no key update`);
  return findRow(em, PaymentGraceEntity, { where: { subscriptionId, closedAt: null } });
}

interface Following {
  view: SubscriptionView;
  isPaidOtherwise: boolean;
  now: Date;
}

async function open(
  options: PaymentGraceOptions,
  transaction: Transaction,
  { organizationId, now, ...standing }: Following & { organizationId: string },
): Promise<void> {
  const { em } = transaction;
  const { view } = standing;
  const { graceDays, outbox } = options;
  const suspendAt = new Date(now.getTime() + graceDays * DAY_MS);
  const times = { status: 'waiting' as const, startedAt: now, suspendAt, remindersSent: 0 };
  const { nextStepAt } = planGraceStep(standing, times, now) as Extract<GraceStep, { kind: 'wait' }>;
  const id = newId('paymentGrace');
  const [row] = await em.execute<{ episode: number }[]>(sql`
    insert into payment_graces (id, org_id, subscription_id, episode, status, started_at, suspend_at, next_step_at,
      reminders_sent)
    select ${id}, ${organizationId}, ${view.id}, 1 + coalesce(max(episode), 0), 'waiting', ${now}, ${suspendAt},
      ${nextStepAt}, 0 from payment_graces where subscription_id = ${view.id}
    on conflict (subscription_id) where closed_at is null do nothing returning episode`);
  if (!row) return;
  const grace = { id, organizationId, subscriptionId: view.id, episode: row.episode };
  outbox.enqueue(transaction, organizationId, { start: buildGraceStart(grace) });
  await recordBillingAudit(transaction, {
    ...auditOf('started', grace),
    reason: 'The payment of an invoice failed.',
    details: { grace_id: id, invoice_id: view.openInvoice?.id ?? null, suspend_at: suspendAt.toISOString() },
  });
  await notifyOfInvoice(options, transaction, {
    template: 'payment-failed',
    grace: { ...grace, suspendAt },
    view,
    dedupeKey: `payment-failed/${id}`,
  });
}

async function takeStep(
  options: PaymentGraceOptions,
  transaction: Transaction,
  { grace, now, ...standing }: Following & { grace: Row<PaymentGrace> },
): Promise<void> {
  const { em } = transaction;
  const { view } = standing;
  const status = grace.status === 'suspended' ? 'suspended' : 'waiting';
  const step = planGraceStep(standing, { ...grace, status }, now);
  switch (step.kind) {
    case 'wait':
      await em.execute(
        sql`update payment_graces set next_step_at = ${step.nextStepAt} where id = ${grace.id}`,
      );
      return;
    case 'remind':
      await em.execute(sql`
        update payment_graces set next_step_at = ${step.nextStepAt}, reminders_sent = ${step.remindersSent}
        where id = ${grace.id}`);
      return notifyOfInvoice(options, transaction, {
        template: 'payment-reminder',
        grace,
        view,
        dedupeKey: `payment-reminder/${grace.id}/${grace.suspendAt.getTime()}/${step.remindersSent}`,
      });
    case 'suspend':
      return suspend(options, transaction, { grace, nextStepAt: step.nextStepAt, now });
    default:
      return close(options, transaction, {
        grace,
        status: step.kind,
        reason: reasonOf(step.kind, view),
        now,
      });
  }
}

function reasonOf(kind: 'recovered' | 'ended', { endedAt }: SubscriptionView): string {
  if (kind === 'recovered') return 'The payment arrived.';
  return endedAt ? 'The subscription has ended.' : 'Another subscription of the organization is paid.';
}

const auditOf = (
  change: 'started' | 'extended' | 'recovered' | 'ended',
  { organizationId, subscriptionId }: Pick<PaymentGrace, 'organizationId' | 'subscriptionId'>,
) => ({
  organizationId,
  subscriptionId,
  action: `payment_grace.${change}`,
  resourceType: 'subscription',
  resourceId: subscriptionId,
});

async function suspend(
  { suspensions }: PaymentGraceOptions,
  { em, ...transaction }: Transaction,
  { grace, nextStepAt, now }: { grace: Row<PaymentGrace>; nextStepAt: Date; now: Date },
): Promise<void> {
  // False if staff suspended it for the payment already: then staff end it, too.
  const isOwn = await suspensions.suspend({ em, ...transaction }, grace.organizationId, {
    reason: 'payment',
    note: `The payment for subscription ${grace.subscriptionId} has been overdue since ${formatUtc(grace.startedAt)}.`,
  });
  await em.execute(sql`
    update payment_graces set status = 'suspended', suspended_at = ${isOwn ? now : null}, next_step_at = ${nextStepAt}
    where id = ${grace.id}`);
}

async function close(
  { outbox, suspensions, notifications }: PaymentGraceOptions,
  transaction: Transaction,
  {
    grace,
    status,
    reason,
    now,
  }: {
    grace: Row<PaymentGrace>;
    status: Extract<GraceStatus, 'recovered' | 'ended'>;
    reason: string;
    now: Date;
  },
): Promise<void> {
  const { organizationId } = grace;
  await transaction.em.execute(sql`
    update payment_graces set status = ${status}, closed_at = ${now}, next_step_at = null where id = ${grace.id}`);
  await recordBillingAudit(transaction, {
    ...auditOf(status, grace),
    reason,
    details: { grace_id: grace.id },
  });
  // Lifts only what this grace suspended, and no suspension for another reason.
  if (grace.suspendedAt)
    await suspensions.reinstate(transaction, organizationId, {
      reason: 'payment',
      note: reason,
    });
  else if (status === 'recovered')
    await notifications.notifyOwners(transaction, {
      organizationId,
      template: 'payment-recovered',
      params: { organizationId },
      dedupeKey: `payment-recovered/${grace.id}`,
    });
  enqueueGraceWake(transaction, outbox, grace);
}

async function notifyOfInvoice(
  { notifications }: PaymentGraceOptions,
  transaction: Transaction,
  {
    template,
    grace: { organizationId, suspendAt },
    view: { openInvoice },
    dedupeKey,
  }: {
    template: 'payment-failed' | 'payment-reminder';
    grace: Pick<PaymentGrace, 'organizationId' | 'suspendAt'>;
    view: SubscriptionView;
    dedupeKey: string;
  },
): Promise<void> {
  await notifications.notifyOwners(transaction, {
    organizationId,
    template,
    params: {
      organizationId,
      suspendAt: formatUtc(suspendAt),
      nextAttemptAt: openInvoice?.nextAttemptAt ? formatUtc(openInvoice.nextAttemptAt) : null,
    },
    dedupeKey,
  });
}
