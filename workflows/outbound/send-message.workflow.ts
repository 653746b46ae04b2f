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
const { recordSend, resolveAmbiguity, cancelMessage } = proxyActivities<OutboundActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { openSend } = proxyLocalActivities<OutboundActivities>({
  startToCloseTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const cancel = defineSignal(CANCEL_SEND);
export const retryNow = defineSignal(RETRY_SEND_NOW);
export const outcomeRecorded = defineSignal(OUTCOME_RECORDED);
export const resolveAmbiguous = defineUpdate<string, [AmbiguityResolution]>(RESOLVE_AMBIGUOUS);

/** What an operator sees, and what people and reports have said since it was last looked at. */
interface Run {
  board: StageReporter<SendStage>;
  cancel: boolean;
  retry: boolean;
  outcome: boolean;
  resolution: AmbiguityResolution | null;
}

/**
 * The life of one outbound message, from the gate to the relay's last word. Reports of delivery come later and fold
 * into the database by themselves; `trackDelivery` waits for them.
 */
export async function sendMessage({ messageId }: SendMessageInput): Promise<void> {
  const run = listen();
  try {
    await sendUntilSettled(messageId, run);
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => cleanUp(messageId));
    throw error;
  }
}

async function sendUntilSettled(messageId: string, run: Run): Promise<void> {
  for (let tries = 0; (await openSend({ messageId })) === 'proceed'; tries += 1) {
    await transmitMessage({ messageId });
    let state = await recordSend({ messageId });
    if (state === 'needs_attention') state = await waitForAnswer(messageId, run);
    if (state === 'settled') return;
    if ((await waitForNextTry(messageId, tries, run)) === 'canceled') return;
  }
}

/** Nobody knows whether the mail left: wait, however long, for a person or a signed report. */
async function waitForAnswer(messageId: string, run: Run): Promise<'settled' | 'deferred'> {
  run.board.report(
    'needs_attention',
    'The relay may have accepted the mail; its answer was lost. Check the relay’s log, then send the update `resolveAmbiguous` with "sent" or "resend".',
  );
  for (;;) {
    await condition(() => run.resolution !== null || run.outcome);
    const { resolution } = run;
    run.resolution = null;
    run.outcome = false;
    const state = resolution
      ? await resolveAmbiguity({ messageId, resolution })
      : await recordSend({ messageId });
    if (state === 'needs_attention') continue;
    if (resolution === 'resend') run.retry = true;
    run.board.report('sending', '');
    return state;
  }
}

async function waitForNextTry(messageId: string, tries: number, run: Run): Promise<'retry' | 'canceled'> {
  const delayMs = SEND_RETRY_DELAYS_MS[Math.min(tries, SEND_RETRY_DELAYS_MS.length - 1)] as number;
  if (!run.retry && !run.cancel) {
    run.board.report(
      'deferred',
      `Deferred by the relay after ${tries + 1} tries; next one in ${delayMs / 1000} s. Signals: retryNow, cancel.`,
    );
  }
  for (;;) {
    await condition(() => run.retry || run.cancel, delayMs);
    if (!run.cancel) break;
    run.cancel = false;
    if ((await cancelMessage({ messageId })) === 'canceled') return 'canceled';
  }
  run.retry = false;
  run.board.report('sending', '');
  return 'retry';
}

/** The run was canceled: what was tried is recorded, what was not is canceled. */
async function cleanUp(messageId: string): Promise<void> {
  await recordSend({ messageId });
  await cancelMessage({ messageId });
}

function listen(): Run {
  const run: Run = {
    board: createStageReporter<SendStage>('sending'),
    cancel: false,
    retry: false,
    outcome: false,
    resolution: null,
  };
  setHandler(
    cancel,
    () => {
      run.cancel = true;
    },
    { description: 'Stop the message, if nothing of it has left.' },
  );
  setHandler(
    retryNow,
    () => {
      run.retry = true;
    },
    { description: 'Try a deferred message now.' },
  );
  setHandler(
    outcomeRecorded,
    () => {
      run.outcome = true;
    },
    { description: 'Sent by the service: an outcome is in the database.' },
  );
  setHandler(
    resolveAmbiguous,
    (resolution) => {
      run.resolution = resolution;
      return `taken as ${resolution}`;
    },
    {
      description: '"sent": it left, wait for reports. "resend": send it again, a second copy is accepted.',
      validator: (resolution) => validateResolution(run.board.current, resolution),
    },
  );
  return run;
}

function validateResolution(stage: SendStage, resolution: AmbiguityResolution): void {
  if (resolution !== 'sent' && resolution !== 'resend')
    throw new Error('The resolution is "sent" or "resend".');
  if (stage !== 'needs_attention') throw new Error('Nothing is ambiguous about this message now.');
}
