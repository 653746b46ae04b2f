import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { defaultPayloadConverter } from '@temporalio/common';
import type { ActivityInterceptors, InjectedSinks } from '@temporalio/worker';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import { withSpan } from '../platform/tracing/span.ts';
import type { Tracing } from '../platform/tracing/tracing.ts';
import { RUN_CONTEXT_HEADER, type RunContext, type RunSpan } from '../workflows/run-context.contract.ts';

const runContexts = new WeakMap<Context, RunContext>();

/** Continues the trace of the run in its activities, and remembers its ids for log lines. */
export function runContextInterceptors(context: Context): ActivityInterceptors {
  const { activityType, activityId, attempt, workflowExecution } = context.info;
  return {
    inbound: {
      execute(input, next) {
        const payload = input.headers[RUN_CONTEXT_HEADER];
        if (!payload) return next(input);
        const runContext = defaultPayloadConverter.fromPayload<RunContext>(payload);
        runContexts.set(context, runContext);
        const { traceparent } = runContext;
        if (traceparent === undefined) return next(input);
        const attributes = {
          'temporal.workflow_id': workflowExecution?.workflowId ?? '',
          'temporal.run_id': workflowExecution?.runId ?? '',
          'temporal.activity_id': activityId,
          'temporal.attempt': attempt,
        };
        const name = `RunActivity ${activityType}`;
        return withSpan({ name, kind: 'consumer', attributes, parent: traceparent }, () => next(input));
      },
    },
  };
}

/** Of a label, whose values must be few. */
const FAILURE_TYPE = /^\w{1,64}$/;

/** Exports a traced run when it ends, and counts a run that fails. Neither happens again when a worker replays the run. */
export function runEndSinks({
  tracing,
  failures,
}: {
  tracing: Tracing | undefined;
  failures: ServiceMetrics['workflowFailures'];
}): InjectedSinks<{
  tracing: { runEnded(span: RunSpan): void };
  failures: { runFailed(failureType: string): void };
}> {
  return {
    failures: {
      runFailed: {
        callDuringReplay: false,
        fn: ({ workflowType }, failureType) =>
          failures.inc({
            workflow_type: workflowType,
            failure_type: FAILURE_TYPE.test(failureType) ? failureType : 'other',
          }),
      },
    },
    tracing: {
      runEnded: {
        callDuringReplay: false,
        fn: ({ workflowType, workflowId, runId }, span) =>
          tracing?.export({
            ...span,
            name: `RunWorkflow ${workflowType}`,
            attributes: { 'temporal.workflow_id': workflowId, 'temporal.run_id': runId },
          }),
      },
    },
  };
}

/** Ids that every log line of an activity carries. */
export function activityLogContext(): Record<string, unknown> {
  const context = asyncLocalStorage.getStore();
  if (!context) return {};
  const { workflowExecution, workflowType, activityType, attempt } = context.info;
  const { organizationId, requestId } = runContexts.get(context) ?? {};
  return {
    workflowId: workflowExecution?.workflowId,
    runId: workflowExecution?.runId,
    workflowType,
    activity: activityType,
    attempt,
    organizationId,
    requestId,
  };
}
