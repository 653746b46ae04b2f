import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  OUTCOME_RECORDED,
  SEND_MESSAGE,
  sendMessageWorkflowId,
} from '../../workflows/outbound/send-message.contract.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  TRACK_DELIVERY,
  trackDeliveryWorkflowId,
} from '../../workflows/outbound/track-delivery.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY, type Priority } from '../../workflows/task-queues.contract.ts';
import type { Message } from '../messages/message.entity.ts';
import { isAwaitingReport, isSettled } from './message-status.ts';
import type { OutcomeMessage, OutcomeState } from './outcome-state.ts';

/**
 * Builds the command that starts `sendMessage`. The reconciler uses it to restart a lost run, with urgent priority,
 * because the send is already late.
 */
export function buildSendStart(
  message: Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'>,
  priorityKey: Priority = PRIORITY.urgent,
): StartCommand {
  return {
    workflowType: SEND_MESSAGE,
    workflowId: sendMessageWorkflowId(message.id),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey, fairnessKey: message.organizationId },
    input: { messageId: message.id, gatesInTransmission: true },
    searchAttributes: {
      OrgId: message.organizationId,
      EnvId: message.environmentId,
      InboxId: message.inboxId,
      ResourceId: message.id,
      RelatedId: message.threadId,
      Stage: 'sending',
    },
    summary: `Send ${message.id}`,
  };
}

/** Starts `trackDelivery` if the relay announced reports, and signals the running workflow after a report. */
export function notifyTracking(
  transaction: Transaction,
  outbox: Outbox,
  { message, recipients, attempts }: OutcomeState,
  reported: boolean,
): void {
  const openRecipients = recipients.filter(
    ({ status }) => !isSettled(status) || isAwaitingReport(status),
  ).length;
  const expectsReports = attempts.some(
    ({ state, reportsDelivery }) => state === 'accepted' && reportsDelivery,
  );
  const shouldStart = !message.tracked && expectsReports && openRecipients > 0;
  if (!shouldStart && !(message.tracked && reported)) return;
  message.tracked = true;
  const start = buildTrackingStart(message, openRecipients);
  const { workflowId } = start;
  outbox.enqueue(transaction, message.organizationId, {
    start,
    ...(shouldStart
      ? {}
      : { signal: { workflowId, signalName: DELIVERY_OUTCOME_RECORDED, args: [{ openRecipients }] } }),
  });
}

/** Wakes the run of a send that waits for the outcome of an ambiguous attempt. */
export function signalSend(transaction: Transaction, outbox: Outbox, message: OutcomeMessage): void {
  outbox.enqueue(transaction, message.organizationId, {
    signal: { workflowId: sendMessageWorkflowId(message.id), signalName: OUTCOME_RECORDED, args: [] },
  });
}

/** Starts the wait for delivery reports of a sent message. */
export function buildTrackingStart(
  message: Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'>,
  openRecipients: number,
): StartCommand {
  return {
    workflowType: TRACK_DELIVERY,
    workflowId: trackDeliveryWorkflowId(message.id),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: message.organizationId },
    input: { messageId: message.id, openRecipients },
    searchAttributes: {
      OrgId: message.organizationId,
      EnvId: message.environmentId,
      InboxId: message.inboxId,
      ResourceId: message.id,
      RelatedId: message.threadId,
      Stage: 'awaiting_reports',
    },
    summary: `Track delivery of ${message.id}`,
  };
}
