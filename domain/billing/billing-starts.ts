import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand, SignalCommand, StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  ENFORCE_PAYMENT_GRACE,
  enforcePaymentGraceWorkflowId,
  PAYMENT_RECOVERED,
} from '../../workflows/billing/enforce-payment-grace.contract.ts';
import {
  SUBSCRIPTION_CHANGED,
  SYNC_SUBSCRIPTION,
  syncSubscriptionWorkflowId,
} from '../../workflows/billing/sync-subscription.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { PaymentGrace } from './payment-grace.entity.ts';

interface SubscriptionRef {
  id: string;
  organizationId: string;
}

/** Starts the run that reads the subscription from Stripe; a run that is in progress reads it once more. */
export function buildSyncCommand({
  id,
  organizationId,
}: SubscriptionRef): Required<Pick<OutboxCommand, 'start' | 'signal'>> {
  const workflowId = syncSubscriptionWorkflowId(id);
  return {
    start: {
      workflowType: SYNC_SUBSCRIPTION,
      workflowId,
      taskQueue: MAINTENANCE_QUEUE,
      priority: { priorityKey: PRIORITY.urgent, fairnessKey: organizationId },
      input: { subscriptionId: id },
      searchAttributes: { OrgId: organizationId, ResourceId: id, Stage: 'reading' },
      summary: `Read subscription ${id} back`,
      // Every event starts a run.
      replacesCompleted: true,
    },
    signal: { workflowId, signalName: SUBSCRIPTION_CHANGED, args: [] },
  };
}

export type GraceRef = Pick<PaymentGrace, 'id' | 'organizationId' | 'subscriptionId' | 'generation'>;

export function buildGraceStart({ id, organizationId, subscriptionId, generation }: GraceRef): StartCommand {
  return {
    workflowType: ENFORCE_PAYMENT_GRACE,
    workflowId: enforcePaymentGraceWorkflowId(organizationId, subscriptionId, generation),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: organizationId },
    input: { graceId: id },
    searchAttributes: { OrgId: organizationId, ResourceId: subscriptionId, RelatedId: id, Stage: 'waiting' },
    summary: `Payment grace of ${organizationId} for ${subscriptionId}`,
  };
}

/** Makes the run read its row again. */
export function buildGraceWake({ organizationId, subscriptionId, generation }: GraceRef): SignalCommand {
  return {
    workflowId: enforcePaymentGraceWorkflowId(organizationId, subscriptionId, generation),
    signalName: PAYMENT_RECOVERED,
    args: [],
  };
}

export function enqueueGraceWake(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  grace: GraceRef,
): void {
  outbox.enqueue(transaction, grace.organizationId, { signal: buildGraceWake(grace) });
}
