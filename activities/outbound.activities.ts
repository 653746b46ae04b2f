import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { EventService } from '../domain/events/event.service.ts';
import { cancelOpenRecipients } from '../domain/outbound/cancel-send.ts';
import type { SendState } from '../domain/outbound/message-status.ts';
import { readSettledState, recordSend, resolveAmbiguity } from '../domain/outbound/outcome.service.ts';
import { prepareSend } from '../domain/outbound/prepare-send.ts';
import { type StoppedSend, stopSend } from '../domain/outbound/stop-send.ts';
import { type TransmissionOptions, transmitMessage } from '../domain/outbound/transmit-message.ts';
import type { AmbiguityDecision, NotTransmitted } from '../workflows/outbound/send-message.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';

export interface OutboundActivityOptions extends TransmissionOptions {
  events: EventService;
  logger: Logger;
}

export type OutboundActivities = ReturnType<typeof createOutboundActivities>;

/** Steps of sending a message. Each is idempotent, because Temporal may run it again at any time. */
export function createOutboundActivities(options: OutboundActivityOptions) {
  const { database, outcomes, events, logger } = options;

  const record = async (messageId: string): Promise<SendState> => {
    const state = await recordSend(database, outcomes, messageId);
    logger.info({ messageId, status: state.status }, 'send recorded');
    return state;
  };

  return {
    /** Runs the send gate before `transmitMessage` does, for runs of older versions. */
    prepareSend: ({ messageId }: { messageId: string }): Promise<'proceed' | NotTransmitted> =>
      withApplicationFailures(async () => {
        const prepared = await prepareSend(database, events, messageId);
        return prepared === 'allowed' ? 'proceed' : prepared;
      }),

    /**
     * Runs the send gate, transmits the message to the relay, one SMTP transaction per recipient, and then records the results,
     * which the attempt rows already hold. A retry runs the gate again.
     *
     * @returns undefined if recording fails. It does not throw then, because a retry would run the whole send again: the workflow
     * calls `recordSend` instead.
     */
    transmitMessage: ({
      messageId,
    }: {
      messageId: string;
    }): Promise<SendState | NotTransmitted | undefined> =>
      withHeartbeats(async () => {
        const { cancellationSignal, info } = Context.current();
        const retryOf = info.attempt > 1 ? new Date(info.scheduledTimestampMs) : undefined;
        const prepared = await prepareSend(database, events, messageId);
        // An earlier attempt may have sent the message, and then lost its connection to Temporal.
        if (prepared === 'finished' && retryOf) return await readSettledState(database, messageId);
        if (prepared === 'finished' || prepared === 'held') return prepared;
        const step = { retryOf, marksSending: prepared === 'allowed' };
        const end = await transmitMessage(options, messageId, () => cancellationSignal.aborted, step);
        // A worker that shuts down leaves the remaining recipients to the next attempt, on another worker.
        if (end === 'interrupted') cancellationSignal.throwIfAborted();
        try {
          return await record(messageId);
        } catch (error) {
          logger.warn({ messageId, err: error }, 'send not recorded yet, left to recordSend');
          return undefined;
        }
      }),

    /** Applies the results of the attempts to the message, its recipients and events. */
    recordSend: ({ messageId }: { messageId: string }): Promise<SendState> =>
      withApplicationFailures(() => record(messageId)),

    resolveAmbiguity: ({
      messageId,
      ...decision
    }: { messageId: string } & AmbiguityDecision): Promise<SendState> =>
      withApplicationFailures(() => resolveAmbiguity(database, outcomes, messageId, decision)),

    /** Records that the message cannot be sent, or not without an operator. */
    stopSend: ({
      messageId,
      ...stopped
    }: { messageId: string } & StoppedSend): Promise<'settled' | 'needs_attention'> =>
      withApplicationFailures(() => stopSend(database, events, messageId, stopped)),

    /** Cancels what has not been transmitted. */
    cancelMessage: ({ messageId }: { messageId: string }): Promise<SendState> =>
      withApplicationFailures(() =>
        cancelOpenRecipients(database, outcomes, messageId, 'Canceled by an operator.'),
      ),
  };
}
