import type { Client } from '@temporalio/client';

/**
 * Whether an activity may have run since a time, according to the histories of all runs with a workflow id.
 *
 * @returns `unknown` if Temporal has no such run.
 */
export async function findActivitySince(
  { workflow }: Pick<Client, 'workflow'>,
  { workflowId, activityType, since }: { workflowId: string; activityType: string; since: Date },
): Promise<'none' | 'possible' | 'unknown'> {
  let runs = 0;
  // Only ids of this service: letters, digits, hyphens, underscores and slashes.
  for await (const { runId } of workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    runs += 1;
    const { events } = await workflow.getHandle(workflowId, runId).fetchHistory();
    const open = new Set<string>();
    for (const event of events ?? []) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled?.activityType?.name === activityType) open.add(String(event.eventId));
      const ended =
        event.activityTaskCompletedEventAttributes ??
        event.activityTaskFailedEventAttributes ??
        event.activityTaskTimedOutEventAttributes ??
        event.activityTaskCanceledEventAttributes;
      if (!ended || !open.delete(String(ended.scheduledEventId))) continue;
      if (Number(event.eventTime?.seconds ?? 0) * 1_000 >= since.getTime() - CLOCK_TOLERANCE_MS)
        return 'possible';
    }
    // Temporal does not record the attempts of an activity that is still open.
    if (open.size > 0) return 'possible';
  }
  return runs === 0 ? 'unknown' : 'none';
}

/** The clocks of Temporal and PostgreSQL may differ. */
const CLOCK_TOLERANCE_MS = 60_000;
