import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';

export interface SoughtActivity {
  workflowId: string;
  activityType: string;
  since: Date;
  /** Whether an activity with this result had no effect. The result says nothing about attempts before the one that returned it. */
  isWithoutEffect(result: unknown): boolean;
}

/**
 * Whether an activity may have had an effect since a time, according to the histories of all runs with a workflow id.
 *
 * @returns `unknown` if Temporal has no such run.
 */
export async function findActivitySince(
  { workflow }: Pick<Client, 'workflow'>,
  { workflowId, activityType, since, isWithoutEffect }: SoughtActivity,
): Promise<'none' | 'possible' | 'unknown'> {
  let runs = 0;
  // Only ids of this service: letters, digits, hyphens, underscores and slashes.
  for await (const { runId } of workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    runs += 1;
    const { events } = await workflow.getHandle(workflowId, runId).fetchHistory();
    const open = new Set<string>();
    const retried = new Set<string>();
    for (const event of events ?? []) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled?.activityType?.name === activityType) open.add(String(event.eventId));
      const started = event.activityTaskStartedEventAttributes;
      // An operator who resets an activity resets the number of its attempts, but not the failure of the last one.
      if (started && (started.attempt !== 1 || started.lastFailure))
        retried.add(String(started.scheduledEventId));
      const completed = event.activityTaskCompletedEventAttributes;
      const ended =
        completed ??
        event.activityTaskFailedEventAttributes ??
        event.activityTaskTimedOutEventAttributes ??
        event.activityTaskCanceledEventAttributes;
      if (!ended || !open.delete(String(ended.scheduledEventId))) continue;
      if (Number(event.eventTime?.seconds ?? 0) * 1_000 < since.getTime() - CLOCK_TOLERANCE_MS) continue;
      const [result] = completed?.result?.payloads ?? [];
      const isFirst = !retried.has(String(ended.scheduledEventId));
      if (!(result && isFirst && isWithoutEffect(defaultPayloadConverter.fromPayload(result))))
        return 'possible';
    }
    // Temporal does not record the attempts of an activity that is still open.
    if (open.size > 0) return 'possible';
  }
  return runs === 0 ? 'unknown' : 'none';
}

/** The clocks of Temporal and PostgreSQL may differ. */
const CLOCK_TOLERANCE_MS = 60_000;
