import { proxyActivities } from '@temporalio/workflow';
import type { StoredObjectActivities } from '../../activities/stored-objects.activities.ts';

const { registerOrphanedObjects } = proxyActivities<StoredObjectActivities>({
  // While a run takes longer than a day, the schedule skips the next ones.
  startToCloseTimeout: '7 days',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes', maximumAttempts: 50 },
});

/**
 * Scans the bucket slowly for message objects without a row and registers them for the sweep, which deletes them. A
 * retry after a crash continues from the last heartbeat.
 *
 * @returns the numbers of scanned and registered objects, for the Temporal UI.
 */
export async function findOrphanedObjects(): Promise<{ scanned: number; registered: number }> {
  return registerOrphanedObjects();
}
