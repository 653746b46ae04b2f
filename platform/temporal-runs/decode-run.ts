import type { Client } from '@temporalio/client';
import { optionalTsToDate } from '@temporalio/common/lib/time.js';
import { SEARCH_ATTRIBUTES, type SearchAttributeName } from '../temporal.ts';
import type {
  PendingActivity,
  WorkflowRun,
  WorkflowRunEnd,
  WorkflowRunEvent,
  WorkflowRunStatus,
} from './workflow-run.ts';

type Service = Client['connection']['workflowService'];
type Description = Awaited<ReturnType<Service['describeWorkflowExecution']>>;
type RawActivity = NonNullable<Description['pendingActivities']>[number];
type RawHistory = Awaited<ReturnType<Service['getWorkflowExecutionHistory']>>['history'];
export type RawEvent = NonNullable<NonNullable<RawHistory>['events']>[number];
type RawFailure = RawActivity['lastFailure'];
interface RawPayload {
  data?: Uint8Array | null;
}

/** temporal.api.enums.v1.WorkflowExecutionStatus */
const STATUSES: Record<number, WorkflowRunStatus> = {
  1: 'running',
  2: 'completed',
  3: 'failed',
  4: 'canceled',
  5: 'terminated',
  6: 'continued_as_new',
  7: 'timed_out',
  8: 'paused',
};
/** temporal.api.enums.v1.PendingActivityState */
const ACTIVITY_STATES: Record<number, PendingActivity['state']> = {
  1: 'waiting',
  2: 'running',
  3: 'canceling',
  4: 'paused',
  5: 'paused',
};

const MAX_DETAIL_CHARACTERS = 2_000;

export function decodeRun({
  workflowExecutionInfo: info,
  executionConfig,
  pendingActivities,
}: Description): WorkflowRun {
  return {
    workflowId: info?.execution?.workflowId ?? '',
    runId: info?.execution?.runId ?? '',
    type: info?.type?.name ?? '',
    status: STATUSES[info?.status ?? 0] ?? 'running',
    startedAt: optionalTsToDate(info?.startTime) ?? new Date(0),
    closedAt: optionalTsToDate(info?.closeTime) ?? null,
    taskQueue: info?.taskQueue ?? '',
    historyLength: Number(info?.historyLength ?? 0),
    searchAttributes: decodeSearchAttributes(info?.searchAttributes?.indexedFields),
    summary: decodeText(executionConfig?.userMetadata?.summary),
    // A terminated run keeps its record of the activities that it waited for.
    pendingActivities: info?.closeTime ? [] : (pendingActivities ?? []).map(decodeActivity),
    // Cancellation has no result: what the run made of it is in its memo.
    canceledAs: info?.status === CANCELED ? (decodeText(info.memo?.fields?.outcome) ?? 'canceled') : null,
  };
}

/** temporal.api.enums.v1.WorkflowExecutionStatus */
const CANCELED = 4;
const TIMED_OUT = { type: 'TimedOut', message: 'The run did not end in time.' };

/** @param last the newest event of the run. */
export function decodeEnd(last: RawEvent | undefined): WorkflowRunEnd {
  if (last?.workflowExecutionTimedOutEventAttributes) return { result: null, failure: TIMED_OUT };
  const terminated = last?.workflowExecutionTerminatedEventAttributes;
  if (terminated)
    return {
      result: null,
      failure: { type: 'Terminated', message: terminated.reason || 'No reason given.' },
    };
  const failed = last?.workflowExecutionFailedEventAttributes;
  if (failed) return { result: null, failure: decodeFailure(failed.failure) };
  return { result: describeResult(last?.workflowExecutionCompletedEventAttributes?.result), failure: null };
}

function decodeActivity(activity: RawActivity): PendingActivity {
  const state = ACTIVITY_STATES[activity.state ?? 0] ?? 'waiting';
  return {
    id: activity.activityId ?? '',
    type: activity.activityType?.name ?? '',
    attempt: activity.attempt ?? 1,
    state,
    lastFailure: describeFailure(activity.lastFailure),
    lastStartedAt: optionalTsToDate(activity.lastStartedTime) ?? null,
    nextAttemptAt:
      state === 'running'
        ? null
        : (optionalTsToDate(activity.nextAttemptScheduleTime ?? activity.scheduledTime) ?? null),
  };
}

export function decodeSearchAttributes(
  fields: Record<string, RawPayload> | null | undefined,
): Partial<Record<SearchAttributeName, string>> {
  return Object.fromEntries(
    SEARCH_ATTRIBUTES.flatMap((name) => {
      const value = decodeJson(fields?.[name]);
      const first = Array.isArray(value) ? value[0] : value;
      return typeof first === 'string' ? [[name, first]] : [];
    }),
  );
}

/** @returns undefined for a missing or encoded payload. */
export function decodeJson(payload: RawPayload | null | undefined): unknown {
  if (!payload?.data || payload.data.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(payload.data).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

export function decodeText(payload: RawPayload | null | undefined): string | null {
  const value = decodeJson(payload);
  return typeof value === 'string' ? value.slice(0, MAX_DETAIL_CHARACTERS) : null;
}

/** The cause, if there is one: that an activity failed says nothing. */
function decodeFailure(failure: RawFailure): WorkflowRunEnd['failure'] {
  if (!failure) return null;
  const cause = failure.cause?.message ? failure.cause : failure;
  return { type: cause.applicationFailureInfo?.type || null, message: cause.message ?? '' };
}

function describeFailure(raw: RawFailure): string | null {
  const failure = decodeFailure(raw);
  return failure && formatFailure(failure);
}

export const formatFailure = ({ type, message }: NonNullable<WorkflowRunEnd['failure']>): string =>
  `${type ? `${type}: ` : ''}${message}`.slice(0, MAX_DETAIL_CHARACTERS);

/** Removes the noise of workflow tasks, and names the activity of each of its events. */
export function decodeEvents(events: readonly RawEvent[]): WorkflowRunEvent[] {
  const activities = new Map(
    events.map((event) => [
      Number(event.eventId),
      event.activityTaskScheduledEventAttributes?.activityType?.name,
    ]),
  );
  return events.flatMap((event) => {
    const type = typeOf(event);
    if (type.startsWith('workflowTask')) return [];
    const attributes = attributesOf(event);
    const activity = activities.get(Number(attributes.scheduledEventId ?? event.eventId));
    return {
      id: Number(event.eventId),
      at: optionalTsToDate(event.eventTime) ?? new Date(0),
      type,
      name: attributes.signalName ?? activity ?? null,
      detail: describeFailure(attributes.failure) ?? attributes.reason ?? describeResult(attributes.result),
    };
  });
}

interface EventAttributes {
  scheduledEventId?: number | { toString(): string } | null;
  signalName?: string | null;
  failure?: RawFailure;
  reason?: string | null;
  result?: { payloads?: RawPayload[] | null } | null;
}

/** The name of the attributes that are set, which is the type of the event. */
const attributesName = (event: RawEvent): string =>
  Object.keys(event).find((key) => key.endsWith('EventAttributes') && event[key as keyof RawEvent]) ?? '';

const typeOf = (event: RawEvent): string => attributesName(event).replace(/EventAttributes$/, '');

const attributesOf = (event: RawEvent): EventAttributes =>
  (event[attributesName(event) as keyof RawEvent] ?? {}) as EventAttributes;

function describeResult(result: EventAttributes['result']): string | null {
  const value = decodeJson(result?.payloads?.[0]);
  if (value === undefined || value === null) return null;
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_DETAIL_CHARACTERS);
}
