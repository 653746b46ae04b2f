import { AppError } from '../../platform/errors.ts';
import type { OutboxCommand, StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  hasPausedActivity,
  type WorkflowRun,
  type WorkflowRunStatus,
} from '../../platform/temporal-runs/workflow-run.ts';
import { PURGE_ACCOUNT, PURGE_ORGANIZATION } from '../../workflows/deletions/purge.contract.ts';
import {
  type AmbiguityResolution,
  RESOLVE_AMBIGUOUS,
  SEND_MESSAGE,
} from '../../workflows/outbound/send-message.contract.ts';
import { controlsOf } from './run-controls.ts';

export const RUN_ACTIONS = ['retry', 'cancel', 'terminate', 'resolve'] as const;
export type RunAction = (typeof RUN_ACTIONS)[number];

export interface RunActionRequest {
  action: RunAction;
  /** Why. */
  note: string;
  /** Of `resolve`. */
  resolution?: AmbiguityResolution;
  /** Of `resolve`: number of the recipient; without it, all ambiguous recipients of the message. */
  recipient?: number;
  /** Of `resolve`: when it was decided. */
  decidedAt: Date;
}

/** What an accepted action does. */
export type RunEffect =
  | 'signaled'
  | 'activities_retried'
  | 'started'
  | 'cancellation_requested'
  | 'terminated';

export interface PlannedAction {
  effect: RunEffect;
  command: OutboxCommand;
}

const ENDED_EARLY: readonly WorkflowRunStatus[] = ['failed', 'canceled', 'terminated', 'timed_out'];
export const isOpen = ({ status }: WorkflowRun): boolean => status === 'running' || status === 'paused';

/** The actions that {@link planAction} would accept, apart from their arguments. */
export function listActions(run: WorkflowRun): RunAction[] {
  // A purge that was stopped by a signal is completed; only its row says so.
  if (!isOpen(run)) return ENDED_EARLY.includes(run.status) || isPurge(run) ? ['retry'] : [];
  return RUN_ACTIONS.filter((action) => {
    if (action === 'retry') return canRetry(run);
    if (action === 'cancel') return findCancelRefusal(run) === undefined;
    return action === 'terminate' || isAmbiguous(run);
  });
}

/**
 * Turns an action into the command for Temporal.
 *
 * @param readStart reads how the run was started. A new run gets the same input; rows decide what it still has to do.
 * @throws AppError `conflict` if the run does not allow the action.
 */
export async function planAction(
  run: WorkflowRun,
  request: RunActionRequest,
  readStart: (run: WorkflowRun) => Promise<StartCommand>,
): Promise<PlannedAction> {
  if (request.action === 'retry' && ENDED_EARLY.includes(run.status))
    return { effect: 'started', command: { start: await readStart(run) } };
  if (!isOpen(run))
    throw conflict(run, `The run has ended: ${run.status}.`, 'Read the state of the resource itself.');
  switch (request.action) {
    case 'retry':
      return planRetry(run);
    case 'cancel':
      return planCancel(run, request.note);
    case 'terminate':
      return {
        effect: 'terminated',
        command: {
          control: { workflowId: run.workflowId, action: 'terminate', reason: request.note },
        },
      };
    case 'resolve':
      return planResolve(run, request);
  }
}

function canRetry(run: WorkflowRun): boolean {
  if (controlsOf(run.type).retry !== undefined || hasPausedActivity(run)) return true;
  return run.pendingActivities.some(({ state }) => state === 'waiting');
}

function planRetry(run: WorkflowRun): PlannedAction {
  const { retry } = controlsOf(run.type);
  // A run handles no signal for the work that its paused activity does.
  if (retry !== undefined && !hasPausedActivity(run)) return signal(run, retry);
  if (!canRetry(run))
    throw conflict(run, 'The run waits for nothing that could be retried.', 'Read its current details.');
  return {
    effect: 'activities_retried',
    command: { control: { workflowId: run.workflowId, action: 'retryActivities' } },
  };
}

function planCancel(run: WorkflowRun, note: string): PlannedAction {
  const refusal = findCancelRefusal(run);
  if (refusal !== undefined) throw conflict(run, 'A canceled run of this type would start again.', refusal);
  const { cancel, cancelTakesReason } = controlsOf(run.type);
  if (cancel !== undefined && !isPurging(run))
    return signal(run, cancel, ...(cancelTakesReason ? [note] : []));
  return {
    effect: 'cancellation_requested',
    command: { control: { workflowId: run.workflowId, action: 'cancel' } },
  };
}

const findCancelRefusal = ({ type }: WorkflowRun): string | undefined => controlsOf(type).cancelInstead;

/** A purge heeds its signal only while it waits. */
const isPurging = (run: WorkflowRun): boolean => isPurge(run) && run.searchAttributes.Stage === 'purging';

const isPurge = ({ type }: WorkflowRun): boolean => type === PURGE_ACCOUNT || type === PURGE_ORGANIZATION;

const isAmbiguous = ({ type, searchAttributes }: WorkflowRun): boolean =>
  type === SEND_MESSAGE && searchAttributes.Stage === 'needs_attention';

function planResolve(
  run: WorkflowRun,
  { resolution, recipient, decidedAt }: RunActionRequest,
): PlannedAction {
  if (!isAmbiguous(run) || resolution === undefined)
    throw conflict(
      run,
      'Only a send whose outcome is unknown can be resolved.',
      'List those with type=sendMessage and stage=needs_attention.',
    );
  return signal(run, RESOLVE_AMBIGUOUS, {
    resolution,
    decidedAt: decidedAt.toISOString(),
    ...(recipient === undefined ? {} : { recipient }),
  });
}

const signal = ({ workflowId }: WorkflowRun, signalName: string, ...args: unknown[]): PlannedAction => ({
  effect: 'signaled',
  command: { signal: { workflowId, signalName, args } },
});

function conflict({ status }: WorkflowRun, detail: string, fix: string): AppError {
  return new AppError('conflict', { detail, fix, extensions: { run_status: status } });
}
