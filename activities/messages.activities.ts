import { activityInfo, Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { SendState } from '../domain/messages/delivery-outcome.ts';
import type { DispatchService } from '../domain/messages/dispatch.service.ts';
import type { IngestService } from '../domain/messages/ingest.service.ts';
import type { AmbiguityResolution } from '../workflows/messages/send-message.contract.ts';
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

    /**
     * Speaks to the relay, one transaction a recipient, and folds what came of it. The results are in the attempts'
     * rows before, so that one who tries again, because the folding failed, transmits nothing twice.
     */
    transmitMessage: ({ messageId }: { messageId: string }): Promise<SendState> =>
      heartbeating(async () => {
        await dispatch.transmit(messageId, () => Context.current().cancellationSignal.aborted);
        return recorded(() => dispatch.record(messageId));
      }),

    /** Folds the attempts into message, recipients and events, where reports or an end came in between. */
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

/** Says so where only the record failed, so that nobody who looks at the run takes it for a failed send. */
async function recorded<T>(record: () => Promise<T>): Promise<T> {
  try {
    return await asFailure(record);
  } catch (error) {
    throw ApplicationFailure.create({
      type: 'NotRecorded',
      message: `Transmitted, and not recorded yet: ${error instanceof Error ? error.message : String(error)}`,
    });
  }
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
