import type { RowOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { SystemSuspensionService } from '../suspensions/system-suspension.service.ts';
import { enqueueGraceWake } from './billing-starts.ts';
import { planGraceStep } from './grace-plan.ts';
import type { GraceStatus, PaymentGraceEntity } from './payment-grace.entity.ts';
import type { SubscriptionView } from './read-subscription.ts';
import { recordBillingAudit } from './record-billing-audit.ts';

type PaymentGrace = RowOf<typeof PaymentGraceEntity>;

export interface PaymentGraceOptions {
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  suspensions: SystemSuspensionService;
  graceDays: number;
}

export interface Following {
  view: SubscriptionView;
  isPaidOtherwise: boolean;
  now: Date;
}

/** Takes the next step of an open grace: waits, reminds, suspends or closes it. */
export async function takeStep(
  options: PaymentGraceOptions,
  transaction: Transaction,
  { grace, now, ...standing }: Following & { grace: PaymentGrace },
): Promise<void> {
  const { view } = standing;
  const own = transaction.db.updateTable('payment_graces').where('id', '=', grace.id);
  const status = grace.status === 'suspended' ? 'suspended' : 'waiting';
  const step = planGraceStep(standing, { ...grace, status }, now);
  switch (step.kind) {
    case 'wait':
      await own.set({ next_step_at: step.nextStepAt }).execute();
      return;
    case 'remind':
      await own.set({ next_step_at: step.nextStepAt, reminders_sent: step.remindersSent }).execute();
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

export const auditOf = (
  change: 'started' | 'extended' | 'recovered' | 'ended',
  { organizationId, subscriptionId }: Pick<PaymentGrace, 'organizationId' | 'subscriptionId'>,
) => ({
  organizationId,
  subscriptionId,
  action: `payment_grace.${change}` as const,
  resourceType: 'subscription',
  resourceId: subscriptionId,
});

async function suspend(
  { suspensions }: PaymentGraceOptions,
  transaction: Transaction,
  { grace, nextStepAt, now }: { grace: PaymentGrace; nextStepAt: Date; now: Date },
): Promise<void> {
  // False if staff have already suspended the organization for the payment. Staff then also lift that suspension.
  const isOwn = await suspensions.suspend(transaction, grace.organizationId, {
    reason: 'payment',
    note: `The payment for subscription ${grace.subscriptionId} has been overdue since ${formatUtc(grace.startedAt)}.`,
  });
  await transaction.db
    .updateTable('payment_graces')
    .set({ status: 'suspended', suspended_at: isOwn ? now : null, next_step_at: nextStepAt })
    .where('id', '=', grace.id)
    .execute();
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
    grace: PaymentGrace;
    status: Extract<GraceStatus, 'recovered' | 'ended'>;
    reason: string;
    now: Date;
  },
): Promise<void> {
  const { organizationId } = grace;
  await transaction.db
    .updateTable('payment_graces')
    .set({ status, closed_at: now, next_step_at: null })
    .where('id', '=', grace.id)
    .execute();
  await recordBillingAudit(transaction, {
    ...auditOf(status, grace),
    reason,
    details: { grace_id: grace.id },
  });
  // Lifts only the suspension of this grace.
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

export async function notifyOfInvoice(
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
