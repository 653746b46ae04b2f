import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { DispatchService } from '../domain/outbound/dispatch.service.ts';
import type { SendState } from '../domain/outbound/message-status.ts';
import type { PreparedSend } from '../domain/outbound/prepare-send.ts';
import type { StoppedSend } from '../domain/outbound/stop-send.ts';
import type { TransmissionService } from '../domain/outbound/transmission.service.ts';
import type { AmbiguityDecision } from '../workflows/outbound/send-message.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';

export interface OutboundActivityOptions {
  dispatch: DispatchService;
  transmissions: TransmissionService;
  logger: Logger;
}

export type OutboundActivities = ReturnType<typeof createOutboundActivities>;

/** Steps of sending a message. Each is idempotent, because Temporal may run it again at any time. */
export function createOutboundActivities({ dispatch, transmissions, logger }: OutboundActivityOptions) {
  const record = async (messageId: string): Promise<SendState> => {
    const state = await dispatch.record(messageId);
    logger.info({ messageId, status: state.status }, 'send recorded');
    return state;
  };

  return {
    /** Checks whether the message may be sent and marks it `sending`; records a refusal. */
    prepareSend: ({ messageId }: { messageId: string }): Promise<PreparedSend> =>
      withApplicationFailures(() => dispatch.prepare(messageId)),

    /**
     * Transmits the message to the relay, one SMTP transaction per recipient, and then records the results, which the attempt
     * rows already hold.
     *
     * @returns undefined if recording fails. It does not throw then, because a retry would transmit to deferred recipients
     * again immediately: the workflow calls `recordSend` instead.
     */
    transmitMessage: ({ messageId }: { messageId: string }): Promise<SendState | undefined> =>
      withHeartbeats(async () => {
        const { cancellationSignal } = Context.current();
        const end = await transmissions.transmit(messageId, () => cancellationSignal.aborted);
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
      withApplicationFailures(() => dispatch.resolveAmbiguity(messageId, decision)),

    /** Records that the message cannot be sent, or not without an operator. */
    stopSend: ({
      messageId,
      ...stopped
    }: { messageId: string } & StoppedSend): Promise<'settled' | 'needs_attention'> =>
      withApplicationFailures(() => dispatch.stop(messageId, stopped)),

    /** Cancels what has not been transmitted. */
    cancelMessage: ({ messageId }: { messageId: string }): Promise<SendState> =>
      withApplicationFailures(() => dispatch.cancel(messageId, 'Canceled by an operator.')),
  };
}
