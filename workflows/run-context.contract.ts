/**
 * What a run inherits from the request that caused it, and passes on to its activities. The memo holds the trace; the request
 * and the organization are search attributes.
 */
export interface RunContext {
  requestId?: string;
  organizationId?: string;
  /** W3C Trace Context. In the header of an activity: of the run itself, so that activities belong to it. */
  traceparent?: string;
}

/** Header of scheduled activities, with a {@link RunContext}. */
export const RUN_CONTEXT_HEADER = 'run-context';

/** A traced run, reported to the worker when it ends. */
export interface RunSpan {
  spanId: string;
  /** The `traceparent` of the memo. */
  parent: string;
  startMs: number;
  endMs: number;
  isError: boolean;
}
