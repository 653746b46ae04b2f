import type { ConnectionLike, WorkflowClientInterceptor } from '@temporalio/client';
import { eventually } from './eventually.ts';

type PendingActivity = Awaited<
  ReturnType<ConnectionLike['workflowService']['describeWorkflowExecution']>
>['pendingActivities'][number];
type Time = NonNullable<PendingActivity['lastStartedTime']>;

interface Execution {
  readonly workflowId?: string | null;
  readonly runId?: string | null;
}

/**
 * Makes a signal, a cancellation or a termination wait until the run is at rest, as long as `isEnabled()`.
 *
 * Temporal's test server refuses a command that cancels an activity or a timer if that ends while the worker handles its
 * workflow task. A real server buffers the end. After the refusal the test server neither times the task out nor delivers it
 * again, so the run hangs: https://github.com/temporalio/sdk-java/issues/3088.
 * A run that is terminated while it executes keeps its time locked: https://github.com/temporalio/sdk-java/issues/1138.
 */
export function waitsForRest(
  connection: () => ConnectionLike,
  isEnabled: () => boolean,
): WorkflowClientInterceptor {
  const rest = async (execution: Execution) => {
    if (isEnabled()) await untilAtRest(connection(), execution);
  };
  return {
    async signal(input, next) {
      await rest(input.workflowExecution);
      return next(input);
    },
    async cancel(input, next) {
      await rest(input.workflowExecution);
      return next(input);
    },
    async terminate(input, next) {
      await rest(input.workflowExecution);
      return next(input);
    },
  };
}

/** Resolves when neither a workflow task nor an attempt of an activity of the run is under way, or when it has ended. */
async function untilAtRest({ workflowService }: ConnectionLike, execution: Execution): Promise<void> {
  const target = { namespace: 'default', execution };
  const readLastEvent = async () =>
    (await workflowService.getWorkflowExecutionHistory(target)).history?.events?.at(-1);
  await eventually(async () => {
    const last = await readLastEvent();
    const { pendingActivities } = await workflowService.describeWorkflowExecution(target);
    const hasTask = last?.workflowTaskScheduledEventAttributes ?? last?.workflowTaskStartedEventAttributes;
    // Between two reads, a task can end and schedule an activity. The first read then shows no activity, and the other no task.
    const hasChanged = String((await readLastEvent())?.eventId) !== String(last?.eventId);
    if (hasTask || hasChanged || !pendingActivities.every(isBackingOff)) throw new Error(NOT_AT_REST);
  });
}

/** The test server keeps the state "started" between two attempts. */
function isBackingOff({ lastStartedTime, lastAttemptCompleteTime }: PendingActivity): boolean {
  return lastAttemptCompleteTime != null && toMs(lastAttemptCompleteTime) >= toMs(lastStartedTime ?? {});
}

const toMs = ({ seconds, nanos }: Time): number => Number(seconds ?? 0) * 1_000 + (nanos ?? 0) / 1_000_000;

const NOT_AT_REST =
  'The run executes. If the test holds an activity while it signals, pass `signalsWhileExecuting` to withWorker, and let the activity end only after the run has handled the signal.';
