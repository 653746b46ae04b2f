import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import {
  RECHECK_DOMAINS,
  RECHECK_DOMAINS_INTERVAL_MS,
  RECHECK_DOMAINS_SCHEDULE_ID,
} from '../workflows/domains/recheck-domains.contract.ts';
import {
  RECONCILE,
  RECONCILE_INTERVAL_MS,
  RECONCILE_SCHEDULE_ID,
} from '../workflows/maintenance/reconcile.contract.ts';
import {
  RETENTION_START_HOUR_UTC,
  START_RETENTION,
  START_RETENTION_SCHEDULE_ID,
} from '../workflows/retention/start-retention.contract.ts';
import {
  FIND_ORPHANED_OBJECTS,
  FIND_ORPHANED_OBJECTS_HOUR_UTC,
  FIND_ORPHANED_OBJECTS_SCHEDULE_ID,
} from '../workflows/stored-objects/find-orphaned-objects.contract.ts';
import { MAINTENANCE_QUEUE } from '../workflows/task-queues.contract.ts';
import {
  CHECK_USAGE,
  CHECK_USAGE_INTERVAL_MS,
  CHECK_USAGE_SCHEDULE_ID,
} from '../workflows/usage-alerts/check-usage.contract.ts';

/** Creates missing schedules. Existing ones do not change, because an operator may have paused or edited them. */
export async function ensureSchedules(temporal: Client): Promise<void> {
  await ensureSchedule(temporal, {
    scheduleId: RECONCILE_SCHEDULE_ID,
    spec: { intervals: [{ every: RECONCILE_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
    action: { type: 'startWorkflow', workflowType: RECONCILE, taskQueue: MAINTENANCE_QUEUE, args: [] },
  });
  await ensureSchedule(temporal, {
    scheduleId: CHECK_USAGE_SCHEDULE_ID,
    spec: { intervals: [{ every: CHECK_USAGE_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '15 minutes' },
    action: { type: 'startWorkflow', workflowType: CHECK_USAGE, taskQueue: MAINTENANCE_QUEUE, args: [] },
  });
  await ensureSchedule(temporal, {
    scheduleId: RECHECK_DOMAINS_SCHEDULE_ID,
    spec: { intervals: [{ every: RECHECK_DOMAINS_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '12 hours' },
    action: { type: 'startWorkflow', workflowType: RECHECK_DOMAINS, taskQueue: MAINTENANCE_QUEUE, args: [] },
  });
  await ensureSchedule(temporal, {
    scheduleId: START_RETENTION_SCHEDULE_ID,
    spec: { calendars: [{ hour: RETENTION_START_HOUR_UTC }], timezone: 'UTC' },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '12 hours' },
    action: { type: 'startWorkflow', workflowType: START_RETENTION, taskQueue: MAINTENANCE_QUEUE, args: [] },
  });
  await ensureSchedule(temporal, {
    scheduleId: FIND_ORPHANED_OBJECTS_SCHEDULE_ID,
    spec: { calendars: [{ hour: FIND_ORPHANED_OBJECTS_HOUR_UTC }], timezone: 'UTC' },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 hour' },
    action: {
      type: 'startWorkflow',
      workflowType: FIND_ORPHANED_OBJECTS,
      taskQueue: MAINTENANCE_QUEUE,
      args: [],
    },
  });
}

async function ensureSchedule(temporal: Client, schedule: ScheduleOptions): Promise<void> {
  try {
    await temporal.schedule.create(schedule);
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
