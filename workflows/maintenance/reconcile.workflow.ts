import { proxyActivities } from '@temporalio/workflow';
import type { MaintenanceActivities } from '../../activities/maintenance.activities.ts';

const { reconcileOverdue } = proxyActivities<MaintenanceActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '1 minute',
  retry: { maximumAttempts: 3 },
});

/**
 * Finds work interrupted by a crash or an operator and starts, releases or settles it. Scheduled every minute; a run
 * that is still active skips the next one.
 */
export async function reconcile(): Promise<Record<string, number>> {
  return reconcileOverdue();
}
