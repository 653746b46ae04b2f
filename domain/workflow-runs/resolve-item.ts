import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  RESOLVE_AMBIGUOUS,
  SEND_MESSAGE,
  sendMessageWorkflowId,
} from '../../workflows/outbound/send-message.contract.ts';
import { buildSendStart } from '../outbound/workflow-commands.ts';
import type { AuditedStaff } from '../staff/record-staff-audit.ts';
import { applyAction } from './apply-action.ts';
import type { AmbiguousMessage } from './find-ambiguous.ts';
import type { RunActionRequest } from './plan-action.ts';
import type { StaffJobItem } from './staff-job.entity.ts';

export interface ResolveItemOptions {
  /** Connected as a worker, because staff see no messages. */
  database: Database;
  outbox: Outbox;
  staff: AuditedStaff;
}

/**
 * Resolves the message that a line of the relay's log names. The signal starts the run of the message if it is missing.
 *
 * @param ambiguous messages with an unknown outcome, including those of this line.
 * @returns why nothing was resolved.
 */
export async function resolveItem(
  { database, outbox, staff }: ResolveItemOptions,
  { recipient: number, email, resolution, ...item }: StaffJobItem,
  { request, ambiguous }: { request: RunActionRequest; ambiguous: readonly AmbiguousMessage[] },
): Promise<string | undefined> {
  const key = keyOf(item);
  const [message, ...others] = ambiguous.filter(({ id, rfcMessageId }) => id === key || rfcMessageId === key);
  if (!message) return 'No message with this id has an unknown outcome.';
  if (others.length > 0)
    return `${others.length + 1} messages have this Message-ID. Name them by their ids: ${[message, ...others].map(({ id }) => id).join(', ')}.`;
  const recipient = email === undefined ? number : message.numbers[email.toLowerCase()];
  if (email !== undefined && recipient === undefined)
    return 'The message has no recipient with this address whose outcome is unknown.';
  const workflowId = sendMessageWorkflowId(message.id);
  const decision = {
    resolution,
    decidedAt: request.decidedAt.toISOString(),
    ...(recipient === undefined ? {} : { recipient }),
  };
  const command = {
    start: buildSendStart(message),
    signal: { workflowId, signalName: RESOLVE_AMBIGUOUS, args: [decision] },
  };
  const { organizationId } = message;
  await database.systemTransaction((transaction) =>
    applyAction(
      transaction,
      { outbox, staff },
      {
        run: { workflowId, type: SEND_MESSAGE, stage: 'needs_attention', organizationId },
        request: recipient === undefined ? request : { ...request, recipient },
        planned: { effect: 'signaled', command },
      },
    ),
  );
  return undefined;
}

/** Logs write a Message-ID with angle brackets. */
export const keyOf = ({ message }: Pick<StaffJobItem, 'message'>): string =>
  message.trim().replace(/^<|>$/g, '');
