import type { StartCommand } from '../outbox/outbox-command.ts';
import type { SearchAttributeName } from '../temporal.ts';

export const RUN_STATUSES = [
  'running',
  'completed',
  'failed',
  'canceled',
  'terminated',
  'timed_out',
  'continued_as_new',
  'paused',
] as const;
export type WorkflowRunStatus = (typeof RUN_STATUSES)[number];

export interface PendingActivity {
  id: string;
  type: string;
  /** Of the next or current attempt, from 1. */
  attempt: number;
  /** `waiting`: for the next attempt or a worker. */
  state: 'waiting' | 'running' | 'canceling' | 'paused';
  /** Type and message of the last attempt's failure; null if none has failed. */
  lastFailure: string | null;
  lastStartedAt: Date | null;
  /** Null while an attempt is running. */
  nextAttemptAt: Date | null;
}

/** A workflow run as Temporal has it. Contains ids, never content or addresses of mail. */
export interface WorkflowRun {
  workflowId: string;
  runId: string;
  type: string;
  status: WorkflowRunStatus;
  startedAt: Date;
  closedAt: Date | null;
  taskQueue: string;
  /** Number of events. */
  historyLength: number;
  searchAttributes: Partial<Record<SearchAttributeName, string>>;
  /** One line; null if the run was started without one. */
  summary: string | null;
  /** Empty once the run is closed. */
  pendingActivities: PendingActivity[];
  /** What a canceled run says of its end; null for others. */
  canceledAs: string | null;
}

/** How a run ended. Both are null while it is open. */
export interface WorkflowRunEnd {
  /** What it returned, or what a canceled run says of its end; null if it failed or was terminated. */
  result: string | null;
  /** Why it failed, was terminated or timed out; null otherwise. */
  failure: { type: string | null; message: string } | null;
}

export const isOpen = ({ status }: Pick<WorkflowRun, 'status'>): boolean =>
  status === 'running' || status === 'paused';

/** An operator paused it: it does nothing until it is resumed. */
export const hasPausedActivity = ({ pendingActivities }: Pick<WorkflowRun, 'pendingActivities'>): boolean =>
  pendingActivities.some(({ state }) => state === 'paused');

export interface WorkflowRunEvent {
  id: number;
  at: Date;
  /** For example `activityTaskFailed`. */
  type: string;
  /** Name of the activity or signal; null for other events. */
  name: string | null;
  /** Failure, reason or result; null if the event has none. */
  detail: string | null;
}

export interface WorkflowRunFilter {
  status: WorkflowRunStatus;
  type?: string | undefined;
  stage?: string | undefined;
  organizationId?: string | undefined;
  startedBefore?: Date | undefined;
  workflowId?: string | undefined;
  /** An id that the run concerns: of its resource, what it belongs to, its inbox, or the request that caused it. */
  about?: string | undefined;
  exceptType?: string | undefined;
}

/** Reads runs from Temporal. Every method throws AppError `unavailable` if Temporal does not respond. */
export interface WorkflowRuns {
  /** Ids of runs from the visibility index, newest first. The index lags behind by up to some seconds. */
  list(
    filter: WorkflowRunFilter,
    page: { limit: number; token?: string | undefined },
  ): Promise<{ runs: { workflowId: string; runId: string }[]; nextToken: string | null }>;
  /** The run, by default the latest one of the workflow id. @returns undefined if there is none. */
  describe(workflowId: string, runId?: string): Promise<WorkflowRun | undefined>;
  /** The newest events, newest first, without workflow tasks. */
  recentEvents(run: Pick<WorkflowRun, 'workflowId' | 'runId'>): Promise<WorkflowRunEvent[]>;
  /** How the run ended, by its last event. */
  readEnd(run: WorkflowRun): Promise<WorkflowRunEnd>;
  /** What the run says about itself; null if it says nothing, or no worker answers. */
  currentDetails(run: Pick<WorkflowRun, 'workflowId' | 'runId'>): Promise<string | null>;
  /** The command that starts the workflow again with the input of this run. */
  readStart(run: Pick<WorkflowRun, 'workflowId' | 'runId'>): Promise<StartCommand>;
}
