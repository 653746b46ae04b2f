import {
  defaultPayloadConverter,
  defineSearchAttributeKey,
  type Headers,
  SearchAttributeType,
} from '@temporalio/common';
import {
  ContinueAsNew,
  isCancellation,
  proxySinks,
  type Sinks,
  type WorkflowInterceptors,
  workflowInfo,
} from '@temporalio/workflow';
import { RUN_CONTEXT_HEADER, type RunContext, type RunSpan } from './run-context.contract.ts';

interface TracingSinks extends Sinks {
  tracing: { runEnded(span: RunSpan): void };
}

/**
 * Passes the request and the trace of a run to its activities, and reports a traced run when it ends. Part of the workflow
 * bundle. Everything derives from the memo, search attributes and the run's id: it uses no random number, adds no promise to the workflow and
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
          if (parent !== undefined)
            result.then(
              () => reportEnd(parent, false),
              (error: unknown) =>
                reportEnd(parent, !(error instanceof ContinueAsNew) && !isCancellation(error)),
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

function reportEnd(parent: string, isError: boolean): void {
  const startMs = workflowInfo().runStartTime.getTime();
  proxySinks<TracingSinks>().tracing.runEnded({
    spanId: spanIdOfRun(),
    parent,
    startMs,
    endMs: Date.now(),
    isError,
  });
}
