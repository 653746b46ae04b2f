import { proxyActivities } from '@temporalio/workflow';
import type { StoredObjectActivities } from '../../activities/stored-objects.activities.ts';

const { registerOrphanedObjects: noteStrayObjects } = proxyActivities<StoredObjectActivities>({
  // Of a bucket that takes longer the next day's run waits for the end.
  startToCloseTimeout: '7 days',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes', maximumAttempts: 50 },
});

/**
 * Looks through the bucket for objects of mail that nothing refers to, slowly, and leaves them to the sweep of storage.
 * A repeat after a crash goes on where the last heartbeat was.
 *
 * @returns how many were looked at and noted, for the Temporal UI.
 */
export async function findOrphanedObjects(): Promise<{ looked: number; noted: number }> {
  return noteStrayObjects();
}
