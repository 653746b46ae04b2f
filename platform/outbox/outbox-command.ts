import type { SearchAttributeName } from '../temporal.ts';

export interface StartCommand {
  workflowType: string;
  workflowId: string;
  taskQueue: string;
  /** Ids only: histories are readable by operators. */
  input: object;
  searchAttributes: Partial<Record<SearchAttributeName, string>>;
  /** One line for the Temporal UI. Ids only. */
  summary: string;
  /** Runs of one key share the queue with those of others, each key its part; 64 bytes at most. Empty: one for all. */
  fairnessKey?: string;
  /** The API request that led to it; in the run's memo. Empty for what a lifecycle starts. */
  requestId?: string;
}

export interface SignalCommand {
  workflowId: string;
  signalName: string;
  args: unknown[];
}

/** `signal` with `start` is signal-with-start: the run is made where it does not exist yet. */
export interface OutboxCommand {
  start?: StartCommand;
  signal?: SignalCommand;
}
