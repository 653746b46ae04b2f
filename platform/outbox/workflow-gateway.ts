import {
  type Client,
  isGrpcServiceError,
  ScheduleNotFoundError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { toSearchAttributes } from '../temporal.ts';
import { activeTraceparent, type SpanDescription, withSpan } from '../tracing/span.ts';
import { createFairnessWeights, type FairnessWeights } from './fairness-weights.ts';
import type { ControlCommand, OutboxCommand, StartCommand } from './outbox-command.ts';

export type RunStatus =
  | 'RUNNING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'TERMINATED'
  | 'TIMED_OUT'
  | 'CONTINUED_AS_NEW'
  | 'PAUSED'
  | 'UNKNOWN'
  | 'UNSPECIFIED'
  | 'NOT_FOUND';

export interface RunDescription {
  status: RunStatus;
  /** Null while the run is open, and if there is none. */
  closedAt: Date | null;
}

/** Calls to Temporal from outside workflows. */
export interface WorkflowGateway {
  /**
   * Also succeeds if the run to start already exists or the run to signal is closed: workflow ids are the idempotency
   * key, and a signal only makes a run read the database again.
   *
   * @throws Error if Temporal does not respond.
   */
  dispatch(command: OutboxCommand): Promise<void>;
  /** The latest run with the id. Uses `describe`, since Temporal's visibility lags behind. */
  describe(workflowId: string): Promise<RunDescription>;
}

type Clients = Pick<Client, 'workflow' | 'schedule'>;

export function createWorkflowGateway(clients: Clients): WorkflowGateway {
  const { workflow } = clients;
  const weights = createFairnessWeights();
  return {
    dispatch(command) {
      const { traceparent } = command;
      if (traceparent === undefined) return deliver(clients, weights, command);
      return withSpan({ ...describeDispatch(command), parent: traceparent }, () =>
        deliver(clients, weights, command),
      );
    },

    async describe(workflowId) {
      try {
        const { status, closeTime } = await workflow.getHandle(workflowId).describe();
        return { status: status.name, closedAt: closeTime ?? null };
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return { status: 'NOT_FOUND', closedAt: null };
        throw error;
      }
    },
  };
}

async function controlRun(
  workflow: Client['workflow'],
  { workflowId, action, reason }: ControlCommand,
): Promise<void> {
  const handle = workflow.getHandle(workflowId);
  if (action === 'cancel') await handle.cancel();
  else if (action === 'terminate') await handle.terminate(reason);
  else await retryActivities(workflow, workflowId);
}

/** gRPC: NOT_FOUND, FAILED_PRECONDITION. */
const GONE_CODES = new Set([5, 9]);
/** temporal.api.enums.v1.PendingActivityState */
const SCHEDULED = 1;
const PAUSED = new Set([4, 5]);

/**
 * Resetting an activity attempts it now, and counts its attempts from one again. Keeps the progress of its heartbeats. A
 * paused one continues.
 */
async function retryActivities(workflow: Client['workflow'], workflowId: string): Promise<void> {
  const { namespace } = workflow.options;
  const execution = { workflowId };
  const { pendingActivities } = await workflow.workflowService.describeWorkflowExecution({
    namespace,
    execution,
  });
  for (const { activityId: id, state } of pendingActivities ?? []) {
    if (!id) continue;
    if (PAUSED.has(Number(state)))
      await workflow.workflowService.unpauseActivity({ namespace, execution, id, resetAttempts: true });
    else if (state === SCHEDULED) await workflow.workflowService.resetActivity({ namespace, execution, id });
  }
}

/** Nothing is left to do. */
const GONE = [WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, ScheduleNotFoundError];

async function deliver(
  { workflow, schedule }: Clients,
  weights: FairnessWeights,
  { start, signal, control, unpause }: OutboxCommand,
): Promise<void> {
  try {
    if (start && signal) {
      await workflow.signalWithStart(start.workflowType, {
        ...startOptions(start, weights),
        signal: signal.signalName,
        signalArgs: signal.args,
      });
    } else if (start) {
      await workflow.start(start.workflowType, startOptions(start, weights));
    } else if (signal) {
      await workflow.getHandle(signal.workflowId).signal(signal.signalName, ...signal.args);
    } else if (control) {
      await controlRun(workflow, control);
    } else if (unpause) {
      await schedule.getHandle(unpause.scheduleId).unpause(unpause.note);
    }
  } catch (error) {
    if (GONE.some((type) => error instanceof type)) return;
    // The activity or its run has ended meanwhile.
    if (control && isGrpcServiceError(error) && GONE_CODES.has(Number(error.code))) return;
    throw error;
  }
}

function describeDispatch({ start, signal, control, unpause }: OutboxCommand): SpanDescription {
  if (unpause) return { name: `UnpauseSchedule ${unpause.scheduleId}`, kind: 'producer', attributes: {} };
  const name = start
    ? `StartWorkflow ${start.workflowType}`
    : signal
      ? `SignalWorkflow ${signal.signalName}`
      : `ControlWorkflow ${control?.action}`;
  const workflowId = (start ?? signal ?? control)?.workflowId ?? '';
  return { name, kind: 'producer', attributes: { 'temporal.workflow_id': workflowId } };
}

/** The memo of a run: what it inherits (`workflows/run-context.contract.ts`), and why the reconciler started it. */
function buildMemo({ recovery }: StartCommand): { memo?: { traceparent?: string; recovery?: string } } {
  const traceparent = activeTraceparent();
  const memo = { ...(traceparent === undefined ? {} : { traceparent }), ...(recovery ? { recovery } : {}) };
  return Object.keys(memo).length === 0 ? {} : { memo };
}

function toPriority({ fairnessHolder, ...priority }: StartCommand['priority'], weights: FairnessWeights) {
  if (fairnessHolder === undefined) return priority;
  return { ...priority, fairnessWeight: weights.weightOf(fairnessHolder, priority.fairnessKey) };
}

function startOptions(start: StartCommand, weights: FairnessWeights) {
  const { requestId, searchAttributes } = start;
  const values = requestId ? { ...searchAttributes, RequestId: requestId } : searchAttributes;
  return {
    workflowId: start.workflowId,
    taskQueue: start.taskQueue,
    args: [start.input],
    typedSearchAttributes: toSearchAttributes(values),
    staticSummary: start.summary,
    // A run's tasks and its activities inherit it.
    priority: toPriority(start.priority, weights),
    ...(start.recovery ? { staticDetails: start.recovery } : {}),
    ...buildMemo(start),
    workflowIdReusePolicy: start.replacesCompleted
      ? WorkflowIdReusePolicy.ALLOW_DUPLICATE
      : WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
  };
}
