import type { Database, Transaction } from '../../platform/database/database.ts';
import type { AmbiguityDecision } from '../../workflows/outbound/send-message.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { cancelRemainingRecipients, cancelUnsentMessage } from './cancel-unsent.ts';
import { lockMessage } from './lock-message.ts';
import { isUnsettled, type SendState, settledAs } from './message-status.ts';
import type { OutcomeService } from './outcome.service.ts';
import { type PreparedSend, prepareSend } from './prepare-send.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';
import { type StoppedSend, stopSend } from './stop-send.ts';

/** The database steps of the workflow `sendMessage`. Every step can be retried. */
export interface DispatchService {
  /** Runs the send gate and marks the message `sending`; see {@link prepareSend}. */
  prepare(messageId: string): Promise<PreparedSend>;
  /** Applies the results of the attempts to recipients and message, and records the events. */
  record(messageId: string): Promise<SendState>;
  /** Applies an operator's decision about the ambiguous attempts. */
  resolveAmbiguity(messageId: string, decision: AmbiguityDecision): Promise<SendState>;
  /**
   * Stops further transmission. Recipients that were already transmitted to are not affected, nor those whose outcome is
   * unknown.
   */
  cancel(messageId: string, detail: string): Promise<SendState>;
  /** Records that the service has stopped trying; see {@link stopSend}. */
  stop(messageId: string, stopped: StoppedSend): Promise<'settled' | 'needs_attention'>;
}

export interface DispatchServiceOptions {
  database: Database;
  outcomes: OutcomeService;
  events: EventService;
}

export function createDispatchService({
  database,
  outcomes,
  events,
}: DispatchServiceOptions): DispatchService {
  const applyAttempts = async (transaction: Transaction, messageId: string) =>
    (await outcomes.apply(transaction, messageId, [])) ?? settledAs('deleted');

  return {
    prepare: (messageId) => prepareSend(database, events, messageId),
    record: (messageId) => database.systemTransaction((transaction) => applyAttempts(transaction, messageId)),

    resolveAmbiguity: (messageId, decision) =>
      database.systemTransaction(async (transaction) => {
        await resolveAttempts(transaction, messageId, decision);
        return applyAttempts(transaction, messageId);
      }),

    cancel: (messageId, detail) =>
      database.systemTransaction(async (transaction) => {
        const { em } = transaction;
        const message = await lockMessage(transaction, messageId);
        if (!message || !isUnsettled(message.status)) return settledAs(message?.status ?? 'deleted');
        const isCanceled =
          (await cancelUnsentMessage(em, message, detail)) ||
          (await cancelRemainingRecipients(em, message, detail));
        if (isCanceled && !isUnsettled(message.status)) return settledAs(message.status);
        await em.flush();
        return applyAttempts(transaction, messageId);
      }),

    stop: (messageId, stopped) =>
      database.systemTransaction((transaction) => stopSend(transaction, events, messageId, stopped)),
  };
}

/** Applies an operator's decision to the ambiguous attempts that it is about. */
async function resolveAttempts(
  transaction: Transaction,
  messageId: string,
  { resolution, recipient, decidedAt }: AmbiguityDecision,
): Promise<void> {
  const { em } = transaction;
  const message = await lockMessage(transaction, messageId);
  const resolved = await em.nativeUpdate(
    SendAttemptEntity,
    {
      messageId,
      state: 'ambiguous',
      ...(recipient === undefined ? {} : { position: recipient }),
      ...(decidedAt === undefined ? {} : { startedAt: { $lte: new Date(decidedAt) } }),
    },
    { state: resolution === 'sent' ? 'accepted' : 'deferred', recorded: false },
  );
  // The decision may be made after the retry window of the message has ended, so the window restarts.
  if (message && resolved > 0 && resolution === 'resend')
    await em.nativeUpdate(MessageEntity, { id: messageId }, { queuedAt: new Date() });
}
