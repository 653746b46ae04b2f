import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import { lockMessage } from './lock-message.ts';
import { isSettled, isUnsettled } from './message-status.ts';
import { findUnsentRecipients, rejectUnsent } from './reject-unsent.ts';

export interface StoppedSend {
  /** For the sender and operators; without addresses and content. */
  reason: string;
  /** The message can never be sent. Otherwise an operator decides whether to try again. */
  isFinal: boolean;
}

/**
 * Records that the service has stopped trying to send a message: `failed` if it can never be sent, otherwise
 * `needs_attention`. Recipients that were already transmitted to are not affected.
 *
 * @returns `settled` if there is nothing left to decide.
 */
export async function stopSend(
  transaction: Transaction,
  events: EventService,
  messageId: string,
  { reason, isFinal }: StoppedSend,
): Promise<'settled' | 'needs_attention'> {
  const message = await lockMessage(transaction, messageId);
  if (!message || !isUnsettled(message.status)) return 'settled';
  const { recipients, unsent } = await findUnsentRecipients(transaction.em, message.id);
  if (recipients.every(({ status }) => isSettled(status))) return 'settled';
  if (isFinal && unsent.length > 0) {
    const rejection = { reason: 'blocked_recipient', detail: reason } as const;
    await rejectUnsent(transaction, events, message, { recipients, unsent, rejection });
    if (message.status === 'rejected') message.status = 'failed';
    if (recipients.every(({ status }) => isSettled(status))) return 'settled';
  }
  message.status = 'needs_attention';
  message.statusDetail = reason;
  return 'needs_attention';
}
