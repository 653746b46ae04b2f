import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { SignalCommand } from '../../platform/outbox/outbox-command.ts';
import {
  RESCHEDULE_DRAFT,
  SEND_SCHEDULED_DRAFT,
  sendScheduledDraftWorkflowId,
  UNSCHEDULE_DRAFT,
} from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Draft } from './draft.entity.ts';

/**
 * Schedules or reschedules the send. Each schedule has its own workflow run; a new time only signals the run. The
 * command is a signal-with-start, because the run may not have started yet, or an operator may have ended it.
 */
export function scheduleSend(transaction: Transaction, outbox: Outbox, draft: Draft, sendAt: Date): void {
  const wasScheduled = draft.sendStatus === 'scheduled';
  draft.sendAt = sendAt;
  draft.sendStatus = 'scheduled';
  draft.sendError = null;
  if (!wasScheduled) draft.scheduleVersion += 1;
  const start = buildScheduledSendStart(draft, sendAt);
  outbox.enqueue(
    transaction,
    draft.organizationId,
    wasScheduled ? { start, signal: buildRescheduleSignal(draft, sendAt) } : { start },
  );
}

/** @param reason shown as `send_error`; null if the client unscheduled the draft. */
export function unscheduleSend(
  transaction: Transaction,
  outbox: Outbox,
  draft: Draft,
  reason: string | null = null,
): void {
  if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, outbox, draft);
  draft.sendAt = null;
  draft.sendError = reason;
  draft.sendStatus = 'draft';
}

/** Ends the run of a scheduled draft. The caller changes the draft. */
export function signalUnscheduled(transaction: Transaction, outbox: Outbox, draft: Draft): void {
  if (!draft.sendAt) return;
  const start = buildScheduledSendStart(draft, draft.sendAt);
  outbox.enqueue(transaction, draft.organizationId, {
    start,
    signal: { workflowId: start.workflowId, signalName: UNSCHEDULE_DRAFT, args: [] },
  });
}

export function buildRescheduleSignal(
  draft: Pick<Draft, 'id' | 'scheduleVersion' | 'version'>,
  sendAt: Date,
): SignalCommand {
  return {
    workflowId: sendScheduledDraftWorkflowId(draft.id, draft.scheduleVersion),
    signalName: RESCHEDULE_DRAFT,
    args: [sendAt.toISOString(), draft.version],
  };
}

/** Builds the command that starts the run of a schedule. The reconciler uses it to restart a lost run. */
export function buildScheduledSendStart(
  draft: Pick<Draft, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'scheduleVersion' | 'version'>,
  sendAt: Date,
) {
  return {
    workflowType: SEND_SCHEDULED_DRAFT,
    workflowId: sendScheduledDraftWorkflowId(draft.id, draft.scheduleVersion),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.scheduled, fairnessKey: draft.organizationId },
    input: {
      draftId: draft.id,
      scheduleVersion: draft.scheduleVersion,
      sendAt: sendAt.toISOString(),
      version: draft.version,
    },
    searchAttributes: {
      OrgId: draft.organizationId,
      EnvId: draft.environmentId,
      InboxId: draft.inboxId,
      ResourceId: draft.id,
      Stage: 'scheduled',
    },
    summary: `Send draft ${draft.id} at ${sendAt.toISOString()}`,
  };
}
