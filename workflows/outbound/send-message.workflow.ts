import {
  ActivityCancellationType,
  CancellationScope,
  condition,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { OutboundActivities } from '../../activities/outbound.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { createStageReporter, type StageReporter } from '../stage.ts';
import {
  type AmbiguityResolution,
  CANCEL_SEND,
  OUTCOME_RECORDED,
  RESOLVE_AMBIGUOUS,
  RETRY_SEND_NOW,
  SEND_RETRY_DELAYS_MS,
  type SendMessageInput,
  type SendStage,
} from './send-message.contract.ts';

const { transmitMessage } = proxyActivities<OutboundActivities>({
  startToCloseTimeout: '2 hours',
  heartbeatTimeout: '30 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { recordSend, resolveAmbiguity, cancelMessage } = proxyActivities<OutboundActivities>(DATABASE_STEP);
const { prepareSend } = proxyLocalActivities<OutboundActivities>({
  startToCloseTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const cancel = defineSignal(CANCEL_SEND);
export const retryNow = defineSignal(RETRY_SEND_NOW);
export const outcomeRecorded = defineSignal(OUTCOME_RECORDED);
export const resolveAmbiguous = defineUpdate<string, [AmbiguityResolution]>(RESOLVE_AMBIGUOUS);

/** The stage that operators see, and the requests that the run has not handled yet. */
interface SendRun {
  stage: StageReporter<SendStage>;
  cancelRequested: boolean;
  retryRequested: boolean;
  outcomeRecorded: boolean;
  resolution: AmbiguityResolution | null;
}

/**
 * Sends one outbound message: from the send gate to the relay's final response for every recipient. Delivery reports
 * arrive later and are applied to the database without this run; `trackDelivery` waits for them.
 */
export async function sendMessage({ messageId }: SendMessageInput): Promise<void> {
  const run = createRun();
  try {
    await sendUntilSettled(messageId, run);
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => cleanUp(messageId));
    throw error;
  }
}

async function sendUntilSettled(messageId: string, run: SendRun): Promise<void> {
  for (let tries = 0; (await prepareSend({ messageId })) === 'proceed'; tries += 1) {
    await transmitMessage({ messageId });
    let state = await recordSend({ messageId });
    if (state === 'needs_attention') state = await waitForResolution(messageId, run);
    if (state === 'settled') return;
    if ((await waitForRetry(messageId, tries, run)) === 'canceled') return;
  }
}

/** Waits, without a time limit, until an operator or a signed report settles whether the relay accepted the message. */
async function waitForResolution(messageId: string, run: SendRun): Promise<'settled' | 'deferred'> {
  run.stage.report(
    'needs_attention',
    'The relay may have accepted the message, but its response was lost. Check the relay’s log, then send the update `resolveAmbiguous` with "sent" or "resend".',
  );
  for (;;) {
    await condition(() => run.resolution !== null || run.outcomeRecorded);
    const { resolution } = run;
    run.resolution = null;
    run.outcomeRecorded = false;
    const state = resolution
      ? await resolveAmbiguity({ messageId, resolution })
      : await recordSend({ messageId });
    if (state === 'needs_attention') continue;
    if (resolution === 'resend') run.retryRequested = true;
    run.stage.report('sending', '');
    return state;
  }
}

async function waitForRetry(messageId: string, tries: number, run: SendRun): Promise<'retry' | 'canceled'> {
  const delayMs = SEND_RETRY_DELAYS_MS[Math.min(tries, SEND_RETRY_DELAYS_MS.length - 1)] as number;
  if (!run.retryRequested && !run.cancelRequested) {
    run.stage.report(
      'deferred',
      `Deferred by the relay after ${tries + 1} attempts. Next attempt in ${delayMs / 1000} s. Signals: retryNow, cancel.`,
    );
  }
  for (;;) {
    await condition(() => run.retryRequested || run.cancelRequested, delayMs);
    if (!run.cancelRequested) break;
    run.cancelRequested = false;
    if ((await cancelMessage({ messageId })) === 'canceled') return 'canceled';
  }
  run.retryRequested = false;
  run.stage.report('sending', '');
  return 'retry';
}

/** Records the finished attempts of a canceled run and cancels the rest of the message. */
async function cleanUp(messageId: string): Promise<void> {
  await recordSend({ messageId });
  await cancelMessage({ messageId });
}

function createRun(): SendRun {
  const run: SendRun = {
    stage: createStageReporter<SendStage>('sending'),
    cancelRequested: false,
    retryRequested: false,
    outcomeRecorded: false,
    resolution: null,
  };
  setHandler(
    cancel,
    () => {
      run.cancelRequested = true;
    },
    { description: 'Cancels what has not been transmitted yet.' },
  );
  setHandler(
    retryNow,
    () => {
      run.retryRequested = true;
    },
    { description: 'Retries a deferred message immediately.' },
  );
  setHandler(
    outcomeRecorded,
    () => {
      run.outcomeRecorded = true;
    },
    { description: 'Sent by the service after it has recorded an outcome.' },
  );
  setHandler(
    resolveAmbiguous,
    (resolution) => {
      run.resolution = resolution;
      return `resolved as ${resolution}`;
    },
    {
      description:
        '"sent": the relay has the message; wait for reports. "resend": send it again, at the risk of a duplicate.',
      validator: (resolution) => validateResolution(run.stage.current, resolution),
    },
  );
  return run;
}

function validateResolution(stage: SendStage, resolution: AmbiguityResolution): void {
  if (resolution !== 'sent' && resolution !== 'resend')
    throw new Error('The resolution must be "sent" or "resend".');
  if (stage !== 'needs_attention') throw new Error('The message is not ambiguous.');
}
