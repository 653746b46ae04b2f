import { proxyActivities } from '@temporalio/workflow';
import type { MaintenanceActivities } from '../../activities/maintenance.activities.ts';

const { reconcileOverdue } = proxyActivities<MaintenanceActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '1 minute',
  retry: { maximumAttempts: 3 },
});

/**
 * Finds what a crash or an operator left unfinished and starts, releases or settles it. Runs every minute by schedule;
 * one that is late lets the next one go.
 */
export async function reconcile(): Promise<Record<string, number>> {
  return reconcileOverdue();
}
