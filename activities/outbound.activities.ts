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
  return {
    /** Checks whether the message may be sent and marks it `sending`; records a refusal. */
    prepareSend: ({ messageId }: { messageId: string }): Promise<PreparedSend> =>
      withApplicationFailures(() => dispatch.prepare(messageId)),

    /** Transmits the message to the relay, one SMTP transaction per recipient. The attempt rows hold the results. */
    transmitMessage: ({ messageId }: { messageId: string }): Promise<void> =>
      withHeartbeats(async () => {
        const { cancellationSignal } = Context.current();
        await transmissions.transmit(messageId, () => cancellationSignal.aborted);
        // A worker that shuts down leaves the remaining recipients to the next attempt, on another worker.
        cancellationSignal.throwIfAborted();
      }),

    /** Applies the results of the attempts to the message, its recipients and events. */
    recordSend: ({ messageId }: { messageId: string }): Promise<SendState> =>
      withApplicationFailures(async () => {
        const state = await dispatch.record(messageId);
        logger.info({ messageId, status: state.status }, 'send recorded');
        return state;
      }),

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
