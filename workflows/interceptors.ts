import {
  defaultPayloadConverter,
  defineSearchAttributeKey,
  type Headers,
  SearchAttributeType,
} from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  ContinueAsNew,
  isCancellation,
  proxySinks,
  type Sinks,
  TemporalFailure,
  type WorkflowInterceptors,
  workflowInfo,
} from '@temporalio/workflow';
import { RUN_CONTEXT_HEADER, type RunContext, type RunSpan } from './run-context.contract.ts';

interface RunSinks extends Sinks {
  tracing: { runEnded(span: RunSpan): void };
  failures: { runFailed(failureType: string): void };
}

/**
 * Passes the request and the trace of a run to its activities, and reports when a traced run ends, and when any run fails.
 * Part of the workflow bundle. Everything derives from the memo, search attributes and the run's id: it uses no random number, adds no promise to the workflow and
 * no command, so a worker with tracing replays the runs of one without, and the reverse.
 */
export const interceptors = (): WorkflowInterceptors => {
  // Read on first use: the memo is not known yet when the interceptors are built.
  let headers: Headers | undefined;
  const withRunContext = <Input extends { headers: Headers }>(input: Input): Input => {
    headers ??= toHeaders(readRunContext());
    return { ...input, headers: { ...input.headers, ...headers } };
  };
  return {
    inbound: [
      {
        execute(input, next) {
          const result = next(input);
          const parent = readMemo().traceparent;
          result.then(
            () => reportEnd(parent, false),
            (error: unknown) => {
              reportEnd(parent, !(error instanceof ContinueAsNew) && !isCancellation(error));
              reportFailure(error);
            },
          );
          return result;
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next(withRunContext(input)),
        scheduleLocalActivity: (input, next) => next(withRunContext(input)),
      },
    ],
  };
};

const ORGANIZATION = defineSearchAttributeKey('OrgId', SearchAttributeType.KEYWORD);
const REQUEST = defineSearchAttributeKey('RequestId', SearchAttributeType.KEYWORD);

const readMemo = (): RunContext => (workflowInfo().memo ?? {}) as RunContext;

/** What activities get: the trace of the memo, with the run itself as their parent. */
function readRunContext(): RunContext {
  const { traceparent } = readMemo();
  const { typedSearchAttributes } = workflowInfo();
  const organizationId = typedSearchAttributes.get(ORGANIZATION);
  const requestId = typedSearchAttributes.get(REQUEST);
  const own: RunContext = {};
  if (organizationId !== undefined) own.organizationId = organizationId;
  if (requestId !== undefined) own.requestId = requestId;
  if (traceparent !== undefined)
    own.traceparent = traceparent.replace(/^(00-\w+)-\w+-/, `$1-${spanIdOfRun()}-`);
  return own;
}

const toHeaders = (context: RunContext): Headers =>
  Object.keys(context).length === 0
    ? {}
    : { [RUN_CONTEXT_HEADER]: defaultPayloadConverter.toPayload(context) };

/** The last 64 bits of the run's id, which are random in every version of UUID. */
const spanIdOfRun = (): string => workflowInfo().runId.replaceAll('-', '').slice(-16);

/** Any other error blocks the run, which stays open. */
function reportFailure(error: unknown): void {
  if (error instanceof TemporalFailure && !isCancellation(error))
    proxySinks<RunSinks>().failures.runFailed(failureTypeOf(error));
}

/** That an activity failed says nothing: its cause does. */
function failureTypeOf(error: TemporalFailure): string {
  const cause = error instanceof ActivityFailure ? (error.cause ?? error) : error;
  return (cause instanceof ApplicationFailure && cause.type) || cause.name;
}

function reportEnd(parent: string | undefined, isError: boolean): void {
  if (parent === undefined) return;
  const startMs = workflowInfo().runStartTime.getTime();
  proxySinks<RunSinks>().tracing.runEnded({
    spanId: spanIdOfRun(),
    parent,
    startMs,
    endMs: Date.now(),
    isError,
  });
}
