import {
  type Client,
  isGrpcServiceError,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
  ServiceError,
} from '@temporalio/client';
import type { Logger } from 'pino';
import type { Config } from '../platform/config.ts';
import {
  METER_USAGE,
  METER_USAGE_INTERVAL_MS,
  METER_USAGE_SCHEDULE_ID,
} from '../workflows/billing/meter-usage.contract.ts';
import {
  RECONCILE_BILLING,
  RECONCILE_BILLING_INTERVAL_MS,
  RECONCILE_BILLING_SCHEDULE_ID,
} from '../workflows/billing/sync-subscription.contract.ts';
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

const BILLING_SCHEDULES: readonly ScheduleOptions[] = [
  {
    scheduleId: RECONCILE_BILLING_SCHEDULE_ID,
    spec: { intervals: [{ every: RECONCILE_BILLING_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 hour' },
    action: {
      type: 'startWorkflow',
      workflowType: RECONCILE_BILLING,
      taskQueue: MAINTENANCE_QUEUE,
      args: [],
    },
  },
  {
    scheduleId: METER_USAGE_SCHEDULE_ID,
    spec: { intervals: [{ every: METER_USAGE_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '15 minutes' },
    action: { type: 'startWorkflow', workflowType: METER_USAGE, taskQueue: MAINTENANCE_QUEUE, args: [] },
  },
];

/** Every schedule of the service. */
export const SCHEDULES: readonly ScheduleOptions[] = [
  ...BILLING_SCHEDULES,
  {
    scheduleId: RECONCILE_SCHEDULE_ID,
    spec: { intervals: [{ every: RECONCILE_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
    action: { type: 'startWorkflow', workflowType: RECONCILE, taskQueue: MAINTENANCE_QUEUE, args: [] },
  },
  {
    scheduleId: CHECK_USAGE_SCHEDULE_ID,
    spec: { intervals: [{ every: CHECK_USAGE_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '15 minutes' },
    action: { type: 'startWorkflow', workflowType: CHECK_USAGE, taskQueue: MAINTENANCE_QUEUE, args: [] },
  },
  {
    scheduleId: RECHECK_DOMAINS_SCHEDULE_ID,
    spec: { intervals: [{ every: RECHECK_DOMAINS_INTERVAL_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '12 hours' },
    action: { type: 'startWorkflow', workflowType: RECHECK_DOMAINS, taskQueue: MAINTENANCE_QUEUE, args: [] },
  },
  {
    scheduleId: START_RETENTION_SCHEDULE_ID,
    spec: { calendars: [{ hour: RETENTION_START_HOUR_UTC }], timezone: 'UTC' },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '12 hours' },
    action: { type: 'startWorkflow', workflowType: START_RETENTION, taskQueue: MAINTENANCE_QUEUE, args: [] },
  },
  {
    scheduleId: FIND_ORPHANED_OBJECTS_SCHEDULE_ID,
    spec: { calendars: [{ hour: FIND_ORPHANED_OBJECTS_HOUR_UTC }], timezone: 'UTC' },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 hour' },
    action: {
      type: 'startWorkflow',
      workflowType: FIND_ORPHANED_OBJECTS,
      taskQueue: MAINTENANCE_QUEUE,
      args: [],
    },
  },
];

/**
 * The schedules that a configuration needs. Without billing two would start runs that do nothing, 120 a day. One that billing
 * has left keeps running: an operator may delete it.
 */
export const schedulesFor = ({
  BILLING_ENABLED,
}: Pick<Config, 'BILLING_ENABLED'>): readonly ScheduleOptions[] =>
  BILLING_ENABLED ? SCHEDULES : SCHEDULES.filter((schedule) => !BILLING_SCHEDULES.includes(schedule));

export type ScheduleState = 'active' | 'paused';

export interface ScheduleWatch {
  /** As of the last check; a schedule whose state is unknown is absent. */
  readonly states: ReadonlyMap<string, ScheduleState>;
  /** Checks now. Never throws: a failure makes the states unknown. */
  check(): Promise<void>;
  stop(): void;
}

const CHECK_INTERVAL_MS = 60_000;
/** Consecutive checks after which a schedule that Temporal can no longer run is replaced. */
const MAX_BROKEN_CHECKS = 5;
/** gRPC status. */
const FAILED_PRECONDITION = 9;

/**
 * Checks the schedules now and every minute. Creates the missing ones: nothing runs without them, and deleting one is
 * always a mistake. Replaces one that Temporal can no longer run, as after its own workflow was canceled. Leaves a paused one
 * paused, because that is an operator's decision, and reports it. Does not change others, because an operator may have edited
 * them.
 */
export async function watchSchedules({
  temporal,
  logger,
  schedules = SCHEDULES,
  intervalMs = CHECK_INTERVAL_MS,
}: {
  temporal: Pick<Client, 'schedule'>;
  logger: Logger;
  schedules?: readonly ScheduleOptions[];
  intervalMs?: number;
}): Promise<ScheduleWatch> {
  const states = new Map<string, ScheduleState>();
  const brokenChecks = new Map<string, number>();
  async function check(): Promise<void> {
    for (const schedule of schedules) {
      const { scheduleId } = schedule;
      const before = states.get(scheduleId);
      try {
        const { state, note, isCreated } = await ensureSchedule(temporal, schedule);
        states.set(scheduleId, state);
        brokenChecks.delete(scheduleId);
        if (isCreated) logger.info({ schedule: scheduleId }, 'created a missing schedule');
        if (state === before) continue;
        if (state === 'paused') logger.warn({ schedule: scheduleId, note }, 'a schedule is paused');
        else if (before === 'paused') logger.info({ schedule: scheduleId }, 'a schedule is active again');
      } catch (error) {
        states.delete(scheduleId);
        logger.warn({ schedule: scheduleId, err: error }, 'could not check a schedule');
        const broken = isBroken(error) ? (brokenChecks.get(scheduleId) ?? 0) + 1 : 0;
        brokenChecks.set(scheduleId, broken);
        if (broken >= MAX_BROKEN_CHECKS) await replace(scheduleId);
      }
    }
  }
  /** The next check creates it again. */
  async function replace(scheduleId: string): Promise<void> {
    try {
      await temporal.schedule.getHandle(scheduleId).delete();
      brokenChecks.delete(scheduleId);
      logger.error({ schedule: scheduleId }, 'replaced a schedule that Temporal could not run');
    } catch (error) {
      logger.warn({ schedule: scheduleId, err: error }, 'could not replace a schedule');
    }
  }
  let checking: Promise<void> | undefined;
  const checkOnce = () => {
    checking ??= check().finally(() => {
      checking = undefined;
    });
    return checking;
  };
  await checkOnce();
  const timer = setInterval(() => void checkOnce(), intervalMs);
  timer.unref();
  return { states, check: checkOnce, stop: () => clearInterval(timer) };
}

/** Temporal keeps a schedule as a workflow, whose tasks fail. */
const isBroken = (error: unknown): boolean =>
  error instanceof ServiceError &&
  isGrpcServiceError(error.cause) &&
  Number(error.cause.code) === FAILED_PRECONDITION;

async function ensureSchedule(
  { schedule: client }: Pick<Client, 'schedule'>,
  schedule: ScheduleOptions,
): Promise<{ state: ScheduleState; note?: string | undefined; isCreated?: boolean }> {
  try {
    const { state } = await client.getHandle(schedule.scheduleId).describe();
    return state.paused ? { state: 'paused', note: state.note } : { state: 'active' };
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
  try {
    await client.create(schedule);
    return { state: 'active', isCreated: true };
  } catch (error) {
    // Another worker was faster.
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
  return { state: 'active' };
}
