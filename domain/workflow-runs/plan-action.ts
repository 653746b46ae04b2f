import { AppError } from '../../platform/errors.ts';
import type { OutboxCommand, StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  hasPausedActivity,
  isOpen,
  type WorkflowRun,
  type WorkflowRunStatus,
} from '../../platform/temporal-runs/workflow-run.ts';
import { PURGE_ACCOUNT, PURGE_ORGANIZATION } from '../../workflows/deletions/purge.contract.ts';
import {
  type AmbiguityResolution,
  RESOLVE_AMBIGUOUS,
  SEND_MESSAGE,
  sendMessageWorkflowId,
} from '../../workflows/outbound/send-message.contract.ts';
import type { OpenRecipients } from './find-ambiguous.ts';
import { controlsOf } from './run-controls.ts';

export const RUN_ACTIONS = ['retry', 'cancel', 'terminate', 'resolve'] as const;
export type RunAction = (typeof RUN_ACTIONS)[number];

export interface RunActionRequest {
  action: RunAction;
  /** Reason for the action. */
  note: string;
  /** For `resolve`. */
  resolution?: AmbiguityResolution;
  /** For `resolve`: number of the recipient; default: all ambiguous recipients of the message. */
  recipient?: number;
  /** For `resolve`: when it was decided. */
  decidedAt: Date;
}

/** The effect of an accepted action. */
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

/**
 * Lists the actions that {@link planAction} would accept, whatever their arguments.
 *
 * @param open of the message that the run sends; undefined for other runs.
 */
export function listActions(run: WorkflowRun, open: OpenRecipients | undefined): RunAction[] {
  // The run of a purge that was stopped by a signal is completed; only the row shows the stop.
  if (!isOpen(run)) {
    const isRetried = ENDED_EARLY.includes(run.status) || isPurge(run);
    return isRetried && !findSendRefusal(run, 'retry', open) ? ['retry'] : [];
  }
  return RUN_ACTIONS.filter((action) => {
    if (findSendRefusal(run, action, open)) return false;
    if (action === 'retry') return canRetry(run);
    if (action === 'cancel') return findCancelRefusal(run) === undefined;
    return action === 'terminate' || run.type === SEND_MESSAGE;
  });
}

/** The message that the run sends; undefined for other runs. */
export const messageIdOf = ({ type, workflowId }: Pick<WorkflowRun, 'type' | 'workflowId'>) =>
  type === SEND_MESSAGE ? workflowId.replace(sendMessageWorkflowId(''), '') : undefined;

/** What {@link planAction} needs to know besides the run. */
export interface RunFacts {
  /** The start of the run. A new run gets the same input; rows decide what it still has to do. */
  readStart(run: WorkflowRun): Promise<StartCommand>;
  /** Undefined if the message does not exist. */
  findOpenRecipients(messageId: string): Promise<OpenRecipients | undefined>;
}

/**
 * Turns an action into the command for Temporal.
 *
 * @throws AppError `conflict` if the run does not allow the action, or it would change nothing.
 */
export async function planAction(
  run: WorkflowRun,
  request: RunActionRequest,
  facts: RunFacts,
): Promise<PlannedAction> {
  const startsAgain = request.action === 'retry' && ENDED_EARLY.includes(run.status);
  if (!startsAgain && !isOpen(run))
    throw conflict(run, `The run has ended: ${run.status}.`, 'Read the state of the resource itself.');
  const messageId = messageIdOf(run);
  const open = messageId === undefined ? undefined : await facts.findOpenRecipients(messageId);
  const refusal = findSendRefusal(run, request.action, open);
  if (refusal) throw conflict(run, refusal.detail, refusal.fix);
  if (startsAgain) return { effect: 'started', command: { start: await facts.readStart(run) } };
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
      return planResolve(run, request, open);
  }
}

function canRetry(run: WorkflowRun): boolean {
  if (controlsOf(run.type).retry !== undefined || hasPausedActivity(run)) return true;
  return run.pendingActivities.some(({ state }) => state === 'waiting');
}

function planRetry(run: WorkflowRun): PlannedAction {
  const { retry } = controlsOf(run.type);
  // While its activity is paused, a run does not handle the signal.
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

/** A purge handles its signal only while it waits. */
const isPurging = (run: WorkflowRun): boolean => isPurge(run) && run.searchAttributes.Stage === 'purging';

const isPurge = ({ type }: WorkflowRun): boolean => type === PURGE_ACCOUNT || type === PURGE_ORGANIZATION;

/** Explains why an action would not change a send, and what would; undefined for other runs. */
function findSendRefusal(
  run: WorkflowRun,
  action: RunAction,
  open: OpenRecipients | undefined,
): { detail: string; fix: string } | undefined {
  if (run.type !== SEND_MESSAGE || action === 'terminate') return undefined;
  const isAmbiguous = open !== undefined && open.ambiguous.length > 0;
  if (action === 'resolve') {
    // Resolving also ends the run of a purged message.
    if (isAmbiguous || (!open && run.searchAttributes.Stage === 'needs_attention')) return undefined;
    return run.searchAttributes.Stage === 'needs_attention'
      ? {
          detail:
            'The send stopped after a failure. The outcome of no recipient is unknown, so there is nothing to resolve.',
          fix: 'Read its current details; retry it when the cause is gone, or cancel it.',
        }
      : {
          detail: 'Only a send whose outcome is unknown can be resolved.',
          fix: 'Look for those that need attention: GET /api/v1/admin/workflows?type=sendMessage&stage=needs_attention.',
        };
  }
  // A paused activity can always be resumed.
  if (!open || open.hasUnsent || hasPausedActivity(run)) return undefined;
  if (isAmbiguous && isOpen(run))
    return {
      detail: `Nothing of the message is left to send or to cancel: the outcome for recipient ${open.ambiguous.join(', ')} is unknown.`,
      fix: 'Search the log of the relay, and resolve the send with "sent" or "resend".',
    };
  return isAmbiguous || isOpen(run)
    ? undefined
    : { detail: 'Every recipient of the message has an outcome.', fix: 'Read the message itself.' };
}

function planResolve(
  run: WorkflowRun,
  { resolution, recipient, decidedAt }: RunActionRequest,
  open: OpenRecipients | undefined,
): PlannedAction {
  if (resolution === undefined)
    throw conflict(
      run,
      'Only a send whose outcome is unknown can be resolved.',
      'Look for those that need attention: GET /api/v1/admin/workflows?type=sendMessage&stage=needs_attention.',
    );
  if (open && recipient !== undefined && !open.ambiguous.includes(recipient))
    throw conflict(
      run,
      `The outcome for recipient ${recipient} is not unknown.`,
      `Name one of these recipients, or none for all of them: ${open.ambiguous.join(', ')}.`,
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
