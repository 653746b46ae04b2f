import type { Database, Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import { isUnsettled } from './message-status.ts';
import {
  findUnsentRecipients,
  hasOpenRecipient,
  lockOutcomeState,
  type OutcomeState,
  rejectRecipients,
  saveStatus,
  statusOfRecipients,
} from './outcome-state.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './send-events.ts';

/**
 * Rejects the recipients of a locked message that have not been transmitted to, and records the event.
 *
 * @returns `open` if a worker crashed during an attempt or before it recorded the result. The next transmission then
 * sends nothing, but marks the attempt `ambiguous`.
 */
export async function rejectUnsent(
  transaction: Transaction,
  events: EventService,
  state: OutcomeState,
  rejection: NonNullable<OutcomeChanges['rejection']>,
): Promise<'settled' | 'open'> {
  const { message, recipients, now } = state;
  const rejected = findUnsentRecipients(state);
  rejectRecipients(state, rejected, rejection.detail);
  message.status = statusOfRecipients(state);
  message.statusDetail = rejection.detail;
  await saveStatus(transaction.db, state);
  const changes = { ...createEmptyChanges(), rejected, rejection };
  await recordOutcomeEvents(transaction, events, { message, recipients }, changes, now);
  return hasOpenRecipient(state) ? 'open' : 'settled';
}

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
export function stopSend(
  database: Database,
  events: EventService,
  messageId: string,
  stopped: StoppedSend,
): Promise<'settled' | 'needs_attention'> {
  return database.systemTransaction((transaction) => stop(transaction, events, messageId, stopped));
}

async function stop(
  transaction: Transaction,
  events: EventService,
  messageId: string,
  { reason, isFinal }: StoppedSend,
): Promise<'settled' | 'needs_attention'> {
  const { db } = transaction;
  const state = await lockOutcomeState(db, messageId);
  if (!state || !isUnsettled(state.message.status) || !hasOpenRecipient(state)) return 'settled';
  const { message } = state;
  if (isFinal && findUnsentRecipients(state).length > 0) {
    const rejection = { reason: 'blocked_recipient', detail: reason } as const;
    await rejectUnsent(transaction, events, state, rejection);
    if (message.status === 'rejected') {
      message.status = 'failed';
      await saveStatus(db, state);
    }
    if (!hasOpenRecipient(state)) return 'settled';
  }
  message.status = 'needs_attention';
  message.statusDetail = reason;
  await saveStatus(db, state);
  return 'needs_attention';
}
