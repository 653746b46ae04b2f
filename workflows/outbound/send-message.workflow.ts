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
import { throwIfCanceled } from '../find-cancellation.ts';
import { createStageReporter, formatTime, type StageReporter } from '../stage.ts';
import { readDecision } from './ambiguity-decision.ts';
import {
  type AmbiguityDecision,
  CANCEL_SEND,
  HELD_FAILURE,
  type NotTransmitted,
  OUTCOME_RECORDED,
  RESOLVE_AMBIGUOUS,
  RETRY_SEND_NOW,
  type ResolveAmbiguousInput,
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
/** Only for runs of older versions. */
const { prepareSend } = proxyLocalActivities<OutboundActivities>({
  startToCloseTimeout: '10 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
  // Longer waits are timers: a worker waits for its local activities before it ends, and keeps a workflow task open.
  localRetryThreshold: '1 second',
});

export const cancel = defineSignal(CANCEL_SEND);
export const retryNow = defineSignal(RETRY_SEND_NOW);
export const outcomeRecorded = defineSignal(OUTCOME_RECORDED);
export const resolveAmbiguous = defineUpdate<string, [ResolveAmbiguousInput]>(RESOLVE_AMBIGUOUS);
export const resolveAmbiguousInBatch = defineSignal<[ResolveAmbiguousInput]>(RESOLVE_AMBIGUOUS);

type SendState = Awaited<ReturnType<OutboundActivities['recordSend']>>;

/** The stage that operators see, and the requests that the run has not handled yet. */
interface SendRun extends SendMessageInput {
  stage: StageReporter<SendStage>;
  cancelRequested: boolean;
  retryRequested: boolean;
  outcomeRecorded: boolean;
  decisions: AmbiguityDecision[];
  /** Numbers of the recipients for whom it is unknown whether the relay accepted the message. */
  ambiguous: readonly number[];
  /** When the run learned of them. */
  ambiguousSince: number;
  /** Why the send stopped after a failure; empty unless it waits for an operator. */
  stopped: string;
  /** A signal that was ignored, and why. */
  ignored: string;
  transmission: CancellationScope;
}

/**
 * Sends one outbound message: from the send gate to the relay's final response for every recipient. A recipient whose
 * outcome is unknown waits for a decision or a report, and does not delay the others. Delivery reports arrive later and
 * are applied to the database without this run; `trackDelivery` waits for them.
 *
 * @returns the status of the message, for the Temporal UI.
 */
export async function sendMessage(input: SendMessageInput): Promise<string> {
  const run = createRun(input);
  try {
    return run.stage.end(await sendUntilSettled(run));
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => cleanUp(run));
    throw error;
  }
}

async function sendUntilSettled(run: SendRun): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    const attempted = await attemptSend(run);
    if (typeof attempted === 'string') return attempted;
    const state = await waitUntilDue(run, attempted, tries);
    if (isSettled(state)) return state.status;
  }
}

const isSettled = ({ hasUnsent, ambiguous }: SendState): boolean => !hasUnsent && ambiguous.length === 0;

/** @returns how the send ended, if nothing can be transmitted. */
async function attemptSend(run: SendRun): Promise<SendState | string> {
  const { messageId } = run;
  try {
    const attempted = (await gateBefore(run)) ?? (await transmit(run)) ?? (await recordSend({ messageId }));
    if (attempted === 'finished') return 'not sent: refused, or already settled';
    return attempted === 'held' ? hold(run) : attempted;
  } catch (error) {
    const cause = isCancellation(error) ? undefined : causeOf(error);
    if (!cause) throw error;
    return waitAfterFailure(run, cause);
  }
}

/** Runs the send gate in a step of its own, in runs of older versions. @returns undefined if the message may be sent. */
async function gateBefore({ messageId, gatesInTransmission }: SendRun): Promise<NotTransmitted | undefined> {
  if (gatesInTransmission) return undefined;
  const prepared = await prepareSend({ messageId });
  return prepared === 'proceed' ? undefined : prepared;
}

/** Why an activity failed: a local one throws its failure itself. @returns undefined if none did. */
function causeOf(error: unknown): Error | undefined {
  if (error instanceof ActivityFailure) return error.cause;
  return error instanceof ApplicationFailure && error.type !== HELD_FAILURE ? error : undefined;
}

/**
 * Transmits to the recipients until it is done, or until the send is canceled, which ends the retries of a failure.
 *
 * @returns undefined if the results of the attempts are not recorded yet: recording failed, the activity was canceled, or
 * this part of the history comes from an earlier version, whose activity did not record.
 */
async function transmit(run: SendRun): Promise<SendState | NotTransmitted | undefined> {
  run.transmission = new CancellationScope();
  if (run.cancelRequested) run.transmission.cancel();
  try {
    return await run.transmission.run(() => transmitMessage({ messageId: run.messageId }));
  } catch (error) {
    // If the run itself is canceled, the next step throws.
    if (!run.cancelRequested) throw error;
    return undefined;
  }
}

/**
 * Ends the send if the message can never be sent. Otherwise waits, without a time limit, until an operator retries or
 * cancels it: the failure is a defect of the service or its data.
 */
async function waitAfterFailure(run: SendRun, cause: Error): Promise<SendState | string> {
  const { messageId } = run;
  const type = cause instanceof ApplicationFailure ? String(cause.type) : 'Error';
  const isFinal = type === UNSENDABLE_FAILURE;
  const reason = isFinal
    ? `The message cannot be sent: ${cause.message}`
    : `Sending failed repeatedly and is not retried automatically (${type}).`;
  const isDecided = () => run.retryRequested || run.cancelRequested;
  do {
    run.outcomeRecorded = false;
    if ((await stopSend({ messageId, reason, isFinal })) === 'settled')
      return isFinal ? `failed: ${cause.message}` : 'settled';
    run.stopped ||= `Stopped at ${formatTime(Date.now())} after a failure that retries did not solve: ${type}: ${cause.message} Signals: retryNow, cancel.`;
    run.stage.report('needs_attention', run.stopped);
    // A report may settle the message.
    await condition(() => isDecided() || run.outcomeRecorded);
  } while (!isDecided());
  run.stopped = '';
  return { status: 'needs_attention', hasUnsent: true, ambiguous: [] };
}

/**
 * Waits until there is something to transmit again, or nothing is left to do. Meanwhile handles the decisions of
 * operators and recorded outcomes.
 */
async function waitUntilDue(run: SendRun, attempted: SendState, tries: number): Promise<SendState> {
  const delayMs = SEND_RETRY_DELAYS_MS[Math.min(tries, SEND_RETRY_DELAYS_MS.length) - 1] as number;
  const dueAt = Date.now() + delayMs;
  for (let state = attempted; ; ) {
    updateAmbiguous(run, state);
    if (isSettled(state)) return state;
    if (isRequested(run)) {
      state = await handleRequest(run, state);
      continue;
    }
    if (state.hasUnsent && (run.retryRequested || Date.now() >= dueAt)) {
      run.retryRequested = false;
      run.stage.report('sending', '');
      return state;
    }
    run.retryRequested = false;
    reportWaiting(run, state, { tries, dueAt });
    const isWoken = () => isRequested(run) || run.retryRequested;
    if (state.hasUnsent) await condition(isWoken, dueAt - Date.now());
    else await condition(isWoken);
  }
}

function updateAmbiguous(run: SendRun, { ambiguous }: SendState): void {
  if (ambiguous.length > 0 && run.ambiguous.length === 0) run.ambiguousSince = Date.now();
  run.ambiguous = ambiguous;
}

function isRequested({ decisions, cancelRequested, outcomeRecorded }: SendRun): boolean {
  return decisions.length > 0 || cancelRequested || outcomeRecorded;
}

/** Handles one request. @returns what is left to do. */
async function handleRequest(run: SendRun, state: SendState): Promise<SendState> {
  const { messageId } = run;
  const decision = run.decisions.shift();
  if (decision) {
    const decided = await resolveAmbiguity({ messageId, ...decision });
    if (decision.resolution === 'resend' && decided.ambiguous.length < state.ambiguous.length)
      run.retryRequested = true;
    return decided;
  }
  if (run.cancelRequested) {
    run.cancelRequested = false;
    return cancelMessage({ messageId });
  }
  run.outcomeRecorded = false;
  return recordSend({ messageId });
}

function reportWaiting(
  run: SendRun,
  { hasUnsent, ambiguous, messageIdLeft }: SendState,
  { tries, dueAt }: { tries: number; dueAt: number },
): void {
  const next = hasUnsent ? `Next attempt at ${formatTime(dueAt)}. Signals: retryNow, cancel.` : '';
  if (ambiguous.length === 0) {
    const details = `Deferred by the relay after ${tries} attempts. ${next}`;
    run.stage.report('deferred', [run.ignored, details].filter(Boolean).join(' '));
    return;
  }
  // As code: the Temporal UI renders Markdown, and turns other quotation marks into typographic ones, which a signal refuses.
  const details = `Since ${formatTime(run.ambiguousSince)}, the outcome for recipient ${ambiguous.join(', ')} is unknown: the relay may have accepted the message, but its response was lost. Search the relay’s log for the Message-ID ${messageIdLeft ?? run.messageId}@…, then send the signal or update \`resolveAmbiguous\` with \`"sent"\` or \`"resend"\`, or \`{"resolution": "sent", "recipient": ${ambiguous[0]}}\`.`;
  const others = hasUnsent ? `Other recipients are deferred. ${next}` : '';
  run.stage.report('needs_attention', [run.ignored, details, others].filter(Boolean).join(' '));
}

/**
 * Fails the run, because only a failed run can be started again under the message's id when what holds it ends. A
 * cancellation that arrived meanwhile comes first: otherwise the release would send the message.
 */
function hold(run: SendRun): SendState {
  if (run.cancelRequested) return { status: 'deferred', hasUnsent: true, ambiguous: [] };
  throwIfCanceled();
  throw ApplicationFailure.nonRetryable(
    'The message is held: a suspension affects it, or staff have switched sending off. Its release starts another run.',
    HELD_FAILURE,
  );
}

/** Records the finished attempts of a canceled run and cancels the rest of the message. */
async function cleanUp({ messageId, stage }: SendRun): Promise<void> {
  await recordSend({ messageId });
  const { status } = await cancelMessage({ messageId });
  stage.end(`run canceled, message ${status}`);
}

function createRun(input: SendMessageInput): SendRun {
  const run: SendRun = {
    ...input,
    stage: createStageReporter<SendStage>('sending'),
    cancelRequested: false,
    retryRequested: false,
    outcomeRecorded: false,
    decisions: [],
    ambiguous: [],
    ambiguousSince: 0,
    stopped: '',
    ignored: '',
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
  handleDecisions(run);
  return run;
}

const RESOLVE_DESCRIPTION =
  '"sent": the relay has the message; wait for reports. "resend": send it again, at the risk of a duplicate. For one recipient: {"resolution": "sent", "recipient": 0}.';

function handleDecisions(run: SendRun): void {
  setHandler(
    resolveAmbiguous,
    (input) => {
      const decision = readDecision(input, Date.now());
      run.decisions.push(decision);
      return `resolved as ${decision.resolution}`;
    },
    { description: RESOLVE_DESCRIPTION, validator: (input) => validateDecision(run, input) },
  );
  setHandler(
    resolveAmbiguousInBatch,
    (input) => {
      try {
        run.decisions.push(readDecision(input, Date.now()));
        if (run.stopped)
          run.stage.report(
            'needs_attention',
            `${run.stopped} The resolution of ${formatTime(Date.now())} waits for one of these signals: it settles nothing by itself.`,
          );
      } catch (error) {
        run.ignored = `Ignored a signal at ${formatTime(Date.now())}: ${(error as Error).message}`;
      }
    },
    { description: RESOLVE_DESCRIPTION },
  );
}

function validateDecision({ ambiguous }: SendRun, input: ResolveAmbiguousInput): void {
  const { recipient } = readDecision(input, Date.now());
  if (ambiguous.length === 0) throw new Error('The message is not ambiguous.');
  if (recipient !== undefined && !ambiguous.includes(recipient))
    throw new Error(`Recipient ${recipient} is not ambiguous; these are: ${ambiguous.join(', ')}.`);
}
