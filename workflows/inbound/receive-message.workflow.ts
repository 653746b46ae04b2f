import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { InboundActivities } from '../../activities/inbound.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { createStageReporter, formatTime, type StageReporter } from '../stage.ts';
import {
  DEFAULT_DISCARD_REASON,
  DISCARD_RECEIPT,
  MAX_DISCARD_REASON_CHARACTERS,
  MAX_LOCAL_INGEST_BYTES,
  RECEIPT_RETRY_MS,
  RETRY_RECEIPT_NOW,
  type ReceiveMessageInput,
  type ReceiveStage,
} from './receive-message.contract.ts';

const { ingestReceipt } = proxyActivities<InboundActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  // A signal ends the backoff immediately but lets an attempt in progress finish.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { ingestReceipt: ingestLocally } = proxyLocalActivities<InboundActivities>({
  // Half of the workflow task timeout.
  startToCloseTimeout: '5 seconds',
  retry: { maximumAttempts: 1 },
});
const { discardReceipt } = proxyActivities<InboundActivities>(DATABASE_STEP);

/** A message that fails for months continues in new runs. */
const MAX_HISTORY_EVENTS = 2_000;

export const retryNow = defineSignal(RETRY_RECEIPT_NOW);
export const discard = defineSignal<[string?]>(DISCARD_RECEIPT);

/** The requests that the run has not handled yet. */
interface ReceiveRun {
  stage: StageReporter<ReceiveStage>;
  retryRequested: boolean;
  discardReason: string | null;
  attempts: CancellationScope;
}

/**
 * Ingests a received message: parses it, assigns a thread, stores and announces it, or applies it if it is a report. One
 * activity suffices, because all steps before the last are repeatable. Small messages are ingested in a local activity
 * within the first workflow task (6 events instead of 11). If that fails, a regular activity retries, which operators can
 * see. If its attempts end with a failure that is not temporary, they begin again every hour, until an operator discards
 * the message: it was accepted, and only a person may decide that it is lost.
 *
 * @returns a description of the result, for the Temporal UI.
 */
export async function receiveMessage(input: ReceiveMessageInput): Promise<string> {
  const run = createRun(input.needsAttention ?? false);
  const { receiptId, sizeBytes } = input;
  if (sizeBytes !== undefined && sizeBytes <= MAX_LOCAL_INGEST_BYTES && !input.needsAttention) {
    try {
      return await ingestLocally({ receiptId });
    } catch (error) {
      if (isCancellation(error)) throw error;
    }
  }
  for (;;) {
    const outcome = await ingestUntilRequest(run, receiptId);
    if (outcome !== undefined) return run.stage.end(outcome);
    if (workflowInfo().historyLength >= MAX_HISTORY_EVENTS && run.discardReason === null)
      await continueAsNew<typeof receiveMessage>({ ...input, needsAttention: true });
  }
}

/** @returns undefined if the attempts begin again. */
async function ingestUntilRequest(run: ReceiveRun, receiptId: string): Promise<string | undefined> {
  if (run.discardReason !== null) return discardReceipt({ receiptId, reason: run.discardReason });
  run.retryRequested = false;
  run.attempts = new CancellationScope();
  try {
    return await run.attempts.run(() => ingestReceipt({ receiptId }));
  } catch (error) {
    // A signal has ended the backoff.
    if (run.retryRequested || run.discardReason !== null) return undefined;
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    await waitAfterFailure(run, error);
    return undefined;
  }
}

async function waitAfterFailure(run: ReceiveRun, { cause }: ActivityFailure): Promise<void> {
  const type = cause instanceof ApplicationFailure ? String(cause.type) : 'Error';
  run.stage.report(
    'needs_attention',
    `The message cannot be processed: ${type}: ${cause?.message} The next attempts begin at ${formatTime(Date.now() + RECEIPT_RETRY_MS)}. Signals: retryNow; discard with the reason, if the message is lost.`,
  );
  await condition(() => run.retryRequested || run.discardReason !== null, RECEIPT_RETRY_MS);
}

function createRun(needsAttention: boolean): ReceiveRun {
  const run: ReceiveRun = {
    stage: createStageReporter<ReceiveStage>(needsAttention ? 'needs_attention' : 'receiving'),
    retryRequested: false,
    discardReason: null,
    attempts: new CancellationScope(),
  };
  setHandler(
    retryNow,
    () => {
      run.retryRequested = true;
      run.attempts.cancel();
    },
    { description: 'Processes the message now. An attempt in progress finishes first.' },
  );
  setHandler(
    discard,
    (reason) => {
      const text = typeof reason === 'string' ? reason.trim() : '';
      run.discardReason = text.slice(0, MAX_DISCARD_REASON_CHARACTERS) || DEFAULT_DISCARD_REASON;
      run.attempts.cancel();
    },
    {
      description:
        'Ends processing for good: the message is lost. Argument: the reason, for example "object deleted by mistake".',
    },
  );
  return run;
}
