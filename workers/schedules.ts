import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import {
  RECONCILE,
  RECONCILE_EVERY_MS,
  RECONCILE_SCHEDULE_ID,
} from '../workflows/maintenance/reconcile.contract.ts';
import { MAINTENANCE_QUEUE } from '../workflows/task-queues.contract.ts';

/** Creates the schedules that are not there yet; one an operator paused or changed stays as it is. */
export async function ensureSchedules(temporal: Client): Promise<void> {
  try {
    await temporal.schedule.create({
      scheduleId: RECONCILE_SCHEDULE_ID,
      spec: { intervals: [{ every: RECONCILE_EVERY_MS }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
      action: { type: 'startWorkflow', workflowType: RECONCILE, taskQueue: MAINTENANCE_QUEUE, args: [] },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
