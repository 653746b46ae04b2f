import { activityInfo, Context } from '@temporalio/activity';
import type { SendState } from '../domain/delivery-reports/delivery-outcome.ts';
import type { IngestService } from '../domain/inbound/ingest.service.ts';
import type { DispatchService } from '../domain/outbound/dispatch.service.ts';
import type { AmbiguityResolution } from '../workflows/outbound/send-message.contract.ts';
import { asFailure } from './failures.ts';

export interface MessageActivityOptions {
  dispatch: DispatchService;
  ingest: IngestService;
}

export type MessageActivities = ReturnType<typeof createMessageActivities>;

/** What the message lifecycles ask for. Every one may run again at any time. */
export function createMessageActivities({ dispatch, ingest }: MessageActivityOptions) {
  return {
    /** Passes the gate and marks the message `sending`; a refusal is recorded at once. */
    openSend: ({ messageId }: { messageId: string }): Promise<'proceed' | 'finished'> =>
      asFailure(() => dispatch.open(messageId)),

    /** Speaks to the relay, one transaction a recipient; the results are in the attempts' rows. */
    transmitMessage: ({ messageId }: { messageId: string }): Promise<void> =>
      heartbeating(() => dispatch.transmit(messageId, () => Context.current().cancellationSignal.aborted)),

    /** Folds the attempts into message, recipients and events. */
    recordSend: ({ messageId }: { messageId: string }): Promise<SendState> =>
      asFailure(() => dispatch.record(messageId)),

    resolveAmbiguity: ({
      messageId,
      resolution,
    }: {
      messageId: string;
      resolution: AmbiguityResolution;
    }): Promise<SendState> => asFailure(() => dispatch.resolveAmbiguity(messageId, resolution)),

    cancelMessage: ({ messageId }: { messageId: string }): Promise<'canceled' | 'too_late'> =>
      asFailure(() => dispatch.cancel(messageId, 'Canceled by an operator.')),

    /** Makes a message, or recorded outcomes, of what an SMTP client handed over. */
    ingestReceipt: ({ receiptId }: { receiptId: string }): Promise<string> =>
      heartbeating(() => ingest.ingest(receiptId)),
  };
}

/** Tells Temporal every few seconds that this worker lives; without it a killed one is only missed after hours. */
async function heartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  // A local one lives within a workflow task, whose own time-out tells.
  if (context.info.isLocal) return asFailure(work);
  const everyMs = Math.max(1_000, (activityInfo().heartbeatTimeoutMs ?? 30_000) / 3);
  const beat = setInterval(() => context.heartbeat(), everyMs);
  try {
    return await asFailure(work);
  } finally {
    clearInterval(beat);
  }
}
