import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import { buildGraceStart, enqueueGraceWake } from './billing-starts.ts';
import { countPassedReminders, type GraceStep, isPaymentOverdue, planGraceStep } from './grace-plan.ts';
import {
  auditOf,
  type Following,
  notifyOfInvoice,
  type PaymentGraceOptions,
  takeStep,
} from './grace-steps.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';
import { recordBillingAudit } from './record-billing-audit.ts';

type PaymentGrace = RowOf<typeof PaymentGraceEntity>;

const DAY_MS = 86_400_000;

export type ExtendedGrace = Pick<PaymentGrace, 'organizationId' | 'subscriptionId' | 'suspendAt'>;

interface GraceExtension {
  graceId: string;
  days: number;
  now: Date;
}

export type PaymentGraceService = ReturnType<typeof createPaymentGraceService>;

/** All methods run in the caller's transaction, which holds the lock of the organization's billing. */
export function createPaymentGraceService(options: PaymentGraceOptions) {
  const { outbox, suspensions } = options;

  /**
   * Postpones the suspension, and lifts it if it is open. The caller records the change in the audit log.
   *
   * @returns the grace, with the day of suspension; null if it is closed.
   */
  async function extend(
    transaction: Transaction,
    { graceId, days, now }: GraceExtension,
  ): Promise<ExtendedGrace | null> {
    const { db } = transaction;
    const grace = await db
      .selectFrom('payment_graces')
      .select(columnsOf(PaymentGraceEntity))
      .where('id', '=', graceId)
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (!grace || grace.closedAt) return null;
    // A test clock may be ahead.
    const since = grace.status === 'suspended' ? grace.suspendedAt : grace.suspendAt;
    const from = new Date(Math.max(now.getTime(), since?.getTime() ?? 0));
    const suspendAt = new Date(from.getTime() + days * DAY_MS);
    await db
      .updateTable('payment_graces')
      .set({
        status: 'waiting',
        suspend_at: suspendAt,
        suspended_at: null,
        reminders_sent: countPassedReminders({ ...grace, status: 'waiting', suspendAt }, now),
        next_step_at: now,
      })
      .where('id', '=', graceId)
      .execute();
    if (grace.suspendedAt)
      await suspensions.reinstate(transaction, grace.organizationId, {
        reason: 'payment',
        note: `The time to pay was extended until ${formatUtc(suspendAt)}.`,
      });
    enqueueGraceWake(transaction, outbox, grace);
    return { ...grace, suspendAt };
  }

  return {
    extend,

    /** Opens, continues or closes the grace of the subscription, depending on what was read from Stripe. */
    async follow(
      transaction: Transaction,
      { organizationId, ...standing }: Following & { organizationId: string },
    ): Promise<void> {
      const { view, isPaidOtherwise } = standing;
      const grace = await lockOpenGrace(transaction.db, view.id);
      if (grace) return takeStep(options, transaction, { grace, ...standing });
      if (isPaymentOverdue(view) && !isPaidOtherwise)
        await open(options, transaction, { organizationId, ...standing });
    },

    /** Extends the grace after a signal to the run. The audit log cannot name the operator who sent the signal. */
    async extendBySignal(transaction: Transaction, extension: GraceExtension): Promise<void> {
      const extended = await extend(transaction, extension);
      if (!extended) return;
      await recordBillingAudit(transaction, {
        ...auditOf('extended', extended),
        reason: 'An operator sent the signal extendGrace.',
        details: { days: extension.days, suspend_at: extended.suspendAt.toISOString() },
      });
    },
  };
}

/** Locks the grace, so that a step and a concurrent extension do not undo each other. */
const lockOpenGrace = (db: Db, subscriptionId: string): Promise<PaymentGrace | undefined> =>
  db
    .selectFrom('payment_graces')
    .select(columnsOf(PaymentGraceEntity))
    .where('subscription_id', '=', subscriptionId)
    .where('closed_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst();

async function open(
  options: PaymentGraceOptions,
  transaction: Transaction,
  { organizationId, now, ...standing }: Following & { organizationId: string },
): Promise<void> {
  const { view } = standing;
  const { graceDays, outbox } = options;
  const suspendAt = new Date(now.getTime() + graceDays * DAY_MS);
  const times = { status: 'waiting' as const, startedAt: now, suspendAt, remindersSent: 0 };
  const { nextStepAt } = planGraceStep(standing, times, now) as Extract<GraceStep, { kind: 'wait' }>;
  const id = newId('paymentGrace');
  const generation = await insertGrace(transaction.db, {
    id,
    organizationId,
    subscriptionId: view.id,
    startedAt: now,
    suspendAt,
    nextStepAt,
  });
  if (generation === undefined) return;
  const grace = { id, organizationId, subscriptionId: view.id, generation };
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

/** Returns the number of the grace within the subscription; undefined if the subscription already has an open grace. */
async function insertGrace(
  db: Db,
  {
    id,
    organizationId,
    subscriptionId,
    startedAt,
    suspendAt,
    nextStepAt,
  }: Pick<
    PaymentGrace,
    'id' | 'organizationId' | 'subscriptionId' | 'startedAt' | 'suspendAt' | 'nextStepAt'
  >,
): Promise<number | undefined> {
  const row = await db
    .insertInto('payment_graces')
    .values((eb) => ({
      id,
      org_id: organizationId,
      subscription_id: subscriptionId,
      generation: eb
        .selectFrom('payment_graces')
        .select(sql<number>`1 + coalesce(max(generation), 0)`.as('next'))
        .where('subscription_id', '=', subscriptionId),
      status: 'waiting',
      started_at: startedAt,
      suspend_at: suspendAt,
      next_step_at: nextStepAt,
      reminders_sent: 0,
    }))
    .onConflict((conflict) => conflict.column('subscription_id').where('closed_at', 'is', null).doNothing())
    .returning('generation')
    .executeTakeFirst();
  return row?.generation;
}
