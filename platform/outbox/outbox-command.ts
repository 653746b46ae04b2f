import type { SearchAttributeName } from '../temporal.ts';

export interface StartPriority {
  /** 1 to 5; a smaller number goes first. */
  priorityKey: number;
  /** Within a priority, Temporal divides the task queue fairly between keys. At most 64 bytes. */
  fairnessKey: string;
  /** Whose keys share one weight. Unset: the key has a share of its own. */
  fairnessHolder?: string;
}

export interface StartCommand {
  workflowType: string;
  workflowId: string;
  taskQueue: string;
  /** Ids only: operators can read histories. */
  input: object;
  searchAttributes: Partial<Record<SearchAttributeName, string>>;
  /** One line for the Temporal UI. Ids only. */
  summary: string;
  /** Order within the task queue, for the run's workflow tasks and activities. */
  priority: StartPriority;
  /**
   * Start the run even if an earlier one with this id has completed. Only after a restore, when the row is as it was before
   * that run.
   */
  replacesCompleted?: boolean;
  /** Why the reconciler starts the run, for the Temporal UI. Unset for every other start. */
  recovery?: string;
  /** The API request that caused the start, for the search attribute. Unset if a workflow caused it. */
  requestId?: string;
}

export interface SignalCommand {
  workflowId: string;
  signalName: string;
  args: unknown[];
}

/** What an operator does with a run. Without effect if the run is closed. */
export interface ControlCommand {
  workflowId: string;
  /** `retryActivities`: the attempts of its activities that wait for one, or are paused, begin again, now. */
  action: 'cancel' | 'terminate' | 'retryActivities';
  /** Of a termination, for the history. */
  reason?: string;
}

/** Without effect if the schedule is gone. */
export interface UnpauseCommand {
  scheduleId: string;
  /** Why, for the Temporal UI. */
  note: string;
}

/** Both `start` and `signal`: signal-with-start, which starts the run if it does not exist. */
export interface OutboxCommand {
  start?: StartCommand;
  signal?: SignalCommand;
  control?: ControlCommand;
  unpause?: UnpauseCommand;
  /** W3C Trace Context of the change, so that its trace continues whichever process dispatches the command. */
  traceparent?: string;
}
