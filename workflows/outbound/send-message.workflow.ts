import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
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
  HELD_FAILURE,
  OUTCOME_RECORDED,
  RESOLVE_AMBIGUOUS,
  RETRY_SEND_NOW,
  SEND_RETRY_DELAYS_MS,
  type SendMessageInput,
  type SendStage,
  UNSENDABLE_FAILURE,
} from './send-message.contract.ts';

const { transmitMessage } = proxyActivities<OutboundActivities>({
  startToCloseTimeout: '2 hours',
  heartbeatTimeout: '30 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { recordSend, resolveAmbiguity, cancelMessage, stopSend } =
  proxyActivities<OutboundActivities>(DATABASE_STEP);
const { prepareSend } = proxyLocalActivities<OutboundActivities>({
  startToCloseTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const cancel = defineSignal(CANCEL_SEND);
export const retryNow = defineSignal(RETRY_SEND_NOW);
export const outcomeRecorded = defineSignal(OUTCOME_RECORDED);
export const resolveAmbiguous = defineUpdate<string, [AmbiguityResolution]>(RESOLVE_AMBIGUOUS);

type SendState = Awaited<ReturnType<OutboundActivities['recordSend']>>;

/** The stage that operators see, and the requests that the run has not handled yet. */
interface SendRun {
  stage: StageReporter<SendStage>;
  cancelRequested: boolean;
  retryRequested: boolean;
  outcomeRecorded: boolean;
  resolution: AmbiguityResolution | null;
  isAmbiguous: boolean;
  transmission: CancellationScope;
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
  for (let tries = 0; ; tries += 1) {
    let state = await attemptSend(messageId, run);
    if (state === 'needs_attention') state = await waitForResolution(messageId, run);
    if (state === 'settled') return;
    if ((await waitForRetry(messageId, tries, run)) === 'canceled') return;
  }
}

async function attemptSend(messageId: string, run: SendRun): Promise<SendState> {
  try {
    const prepared = await prepareSend({ messageId });
    if (prepared === 'finished') return 'settled';
    if (prepared === 'held') throw heldBySuspension();
    await transmit(messageId, run);
    return await recordSend({ messageId });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return waitAfterFailure(messageId, run, error);
  }
}

/** Transmits to the recipients until it is done, or until the send is canceled, which ends the retries of a failure. */
async function transmit(messageId: string, run: SendRun): Promise<void> {
  run.transmission = new CancellationScope();
  if (run.cancelRequested) run.transmission.cancel();
  try {
    await run.transmission.run(() => transmitMessage({ messageId }));
  } catch (error) {
    // If the run itself is canceled, the next step throws.
    if (!run.cancelRequested) throw error;
  }
}

/**
 * Ends the send if the message can never be sent. Otherwise waits, without a time limit, until an operator retries or
 * cancels it: the failure is a defect of the service or its data.
 */
async function waitAfterFailure(
  messageId: string,
  run: SendRun,
  { cause }: ActivityFailure,
): Promise<'settled' | 'deferred'> {
  const type = cause instanceof ApplicationFailure ? String(cause.type) : 'Error';
  const isFinal = type === UNSENDABLE_FAILURE;
  const reason = isFinal
    ? `The message cannot be sent: ${cause?.message}`
    : `Sending failed repeatedly and is not retried automatically (${type}).`;
  if ((await stopSend({ messageId, reason, isFinal })) === 'settled') return 'settled';
  run.stage.report(
    'needs_attention',
    `Stopped after a failure that retries did not solve: ${type}: ${cause?.message} Signals: retryNow, cancel.`,
  );
  for (;;) {
    await condition(() => run.retryRequested || run.cancelRequested);
    if (!run.cancelRequested) return 'deferred';
    run.cancelRequested = false;
    if ((await cancelMessage({ messageId })) === 'canceled') return 'settled';
  }
}

/** Waits, without a time limit, until an operator or a signed report settles whether the relay accepted the message. */
async function waitForResolution(messageId: string, run: SendRun): Promise<'settled' | 'deferred'> {
  run.isAmbiguous = true;
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
    run.isAmbiguous = false;
    if (resolution === 'resend') run.retryRequested = true;
    run.stage.report('sending', '');
    return state;
  }
}

/** Fails the run, because only a failed run can be started again under the message's id when the suspension ends. */
function heldBySuspension(): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    'The organization, environment or inbox is suspended. The message is held; reinstatement starts another run.',
    HELD_FAILURE,
  );
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
    isAmbiguous: false,
    transmission: new CancellationScope(),
  };
  setHandler(
    cancel,
    () => {
      run.cancelRequested = true;
      run.transmission.cancel();
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
      validator: (resolution) => validateResolution(run, resolution),
    },
  );
  return run;
}

function validateResolution({ isAmbiguous }: SendRun, resolution: AmbiguityResolution): void {
  if (resolution !== 'sent' && resolution !== 'resend')
    throw new Error('The resolution must be "sent" or "resend".');
  if (!isAmbiguous) throw new Error('The message is not ambiguous.');
}
