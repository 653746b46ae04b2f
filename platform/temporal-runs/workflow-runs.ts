import { type Client, isGrpcServiceError } from '@temporalio/client';
import { AppError } from '../errors.ts';
import type { StartCommand } from '../outbox/outbox-command.ts';
import type { SearchAttributeName } from '../temporal.ts';
import {
  decodeEnd,
  decodeEvents,
  decodeJson,
  decodeRun,
  decodeSearchAttributes,
  decodeText,
} from './decode-run.ts';
import {
  isOpen,
  type WorkflowRun,
  type WorkflowRunFilter,
  type WorkflowRunStatus,
  type WorkflowRuns,
} from './workflow-run.ts';

const TIMEOUT_MS = 5_000;
/** A query needs a worker. */
const QUERY_TIMEOUT_MS = 3_000;
const RECENT_EVENTS = 100;
const NOT_FOUND = 5;
const INVALID_ARGUMENT = 3;

/** Names in Temporal's list filter. */
const STATUS_NAMES: Record<WorkflowRunStatus, string> = {
  running: 'Running',
  completed: 'Completed',
  failed: 'Failed',
  canceled: 'Canceled',
  terminated: 'Terminated',
  timed_out: 'TimedOut',
  continued_as_new: 'ContinuedAsNew',
  paused: 'Paused',
};

export function createWorkflowRuns(
  { connection, workflow }: Pick<Client, 'connection' | 'workflow'>,
  namespace: string,
): WorkflowRuns {
  const service = connection.workflowService;
  const ask = <T>(work: () => Promise<T>): Promise<T> =>
    connection.withDeadline(Date.now() + TIMEOUT_MS, work).catch(rethrowAsUnavailable);
  const executionOf = ({ workflowId, runId }: Pick<WorkflowRun, 'workflowId' | 'runId'>) => ({
    namespace,
    execution: { workflowId, runId },
  });

  const readNewest = (run: Pick<WorkflowRun, 'workflowId' | 'runId'>, count: number) =>
    ask(async () => {
      const request = { ...executionOf(run), maximumPageSize: count };
      const { history } = await service.getWorkflowExecutionHistoryReverse(request);
      return history?.events ?? [];
    });

  return {
    list: (filter, { limit, token }) =>
      ask(async () => {
        const { executions, nextPageToken } = await service.listWorkflowExecutions({
          namespace,
          pageSize: limit,
          query: buildQuery(filter),
          nextPageToken: token === undefined ? new Uint8Array() : Buffer.from(token, 'base64url'),
        });
        return {
          runs: (executions ?? []).map(({ execution }) => ({
            workflowId: execution?.workflowId ?? '',
            runId: execution?.runId ?? '',
          })),
          nextToken: nextPageToken?.length ? Buffer.from(nextPageToken).toString('base64url') : null,
        };
      }),

    describe: (workflowId, runId = '') =>
      ask(async () => {
        try {
          return decodeRun(await service.describeWorkflowExecution(executionOf({ workflowId, runId })));
        } catch (error) {
          if (hasCode(error, NOT_FOUND) || hasCode(error, INVALID_ARGUMENT)) return undefined;
          throw error;
        }
      }),

    recentEvents: async (run) => decodeEvents(await readNewest(run, RECENT_EVENTS)),

    readEnd: async (run) => {
      if (isOpen(run)) return { result: null, failure: null };
      if (run.canceledAs !== null) return { result: run.canceledAs, failure: null };
      const [last] = await readNewest(run, 1);
      return decodeEnd(last);
    },

    currentDetails: ({ workflowId, runId }) =>
      connection
        .withDeadline(Date.now() + QUERY_TIMEOUT_MS, () =>
          workflow
            .getHandle(workflowId, runId)
            .query<{ currentDetails?: string }>('__temporal_workflow_metadata'),
        )
        .then(
          ({ currentDetails }) => currentDetails || null,
          () => null,
        ),

    readStart: (run) =>
      ask(async () => {
        const request = { ...executionOf(run), maximumPageSize: 1 };
        const { history } = await service.getWorkflowExecutionHistory(request);
        return decodeStart(run.workflowId, history?.events?.[0]);
      }),
  };
}

type FirstEvent = Parameters<typeof decodeEvents>[0][number] | undefined;

function decodeStart(workflowId: string, event: FirstEvent): StartCommand {
  const started = event?.workflowExecutionStartedEventAttributes;
  const input = decodeJson(started?.input?.payloads?.[0]) ?? {};
  return {
    workflowType: started?.workflowType?.name ?? '',
    workflowId,
    taskQueue: started?.taskQueue?.name ?? '',
    input: input as object,
    searchAttributes: decodeSearchAttributes(started?.searchAttributes?.indexedFields),
    summary: decodeText(event?.userMetadata?.summary) ?? '',
    priority: {
      priorityKey: started?.priority?.priorityKey || 3,
      fairnessKey: started?.priority?.fairnessKey ?? '',
    },
  };
}

const quote = (value: string): string => `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

/** The search attributes with the ids that a run concerns. */
const ABOUT = [
  'ResourceId',
  'RelatedId',
  'InboxId',
  'RequestId',
] as const satisfies readonly SearchAttributeName[];

function buildQuery(filter: WorkflowRunFilter): string {
  const { status, type, stage, organizationId, startedBefore, workflowId, about, exceptType } = filter;
  return [
    `ExecutionStatus = ${quote(STATUS_NAMES[status])}`,
    ...(type === undefined ? [] : [`WorkflowType = ${quote(type)}`]),
    ...(exceptType === undefined ? [] : [`WorkflowType != ${quote(exceptType)}`]),
    ...(stage === undefined ? [] : [`Stage = ${quote(stage)}`]),
    ...(organizationId === undefined ? [] : [`OrgId = ${quote(organizationId)}`]),
    ...(workflowId === undefined ? [] : [`WorkflowId = ${quote(workflowId)}`]),
    ...(about === undefined ? [] : [`(${ABOUT.map((name) => `${name} = ${quote(about)}`).join(' OR ')})`]),
    ...(startedBefore === undefined ? [] : [`StartTime <= ${quote(startedBefore.toISOString())}`]),
  ].join(' AND ');
}

const hasCode = (error: unknown, code: number): boolean =>
  isGrpcServiceError(error) && Number(error.code) === code;

function rethrowAsUnavailable(error: unknown): never {
  if (!isGrpcServiceError(error)) throw error;
  throw new AppError('unavailable', {
    detail: 'Temporal did not answer in time.',
    fix: 'Repeat the request; if this continues, check the Temporal server.',
    cause: error,
  });
}
