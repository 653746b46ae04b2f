import type { Logger } from 'pino';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { EventService } from '../events/event.service.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { DEFAULT_ENVIRONMENT_SLUG } from '../organizations/environment.entity.ts';
import { applyUsageDeltas } from '../usage/apply-usage-deltas.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from '../usage/counters.ts';
import { percentageOf } from '../usage/effective-limit.ts';
import { closePeriod, monthOf, type Period } from '../usage/periods.ts';
import { recordUsageEvent } from '../usage/usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from '../usage/usage-status.ts';

export interface UsageCheckProgress {
  /** Id of the last organization checked. */
  after: string;
  organizations: number;
  notified: number;
  /** Organizations whose notification failed; the next check retries them. */
  failed?: number;
}

export interface UsageCheckServiceOptions {
  /** Connected as the worker role, which sees every organization. */
  database: Database;
  events: EventService;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  /** Whether use beyond the tier's limit is billed. Default: never. */
  isMetered?: (db: Db, organizationId: string, counter: UsageCounter) => Promise<boolean>;
  logger: Logger;
  now?: () => Date;
  /** Organizations checked in one statement. */
  pageSize?: number;
}

const PAGE_SIZE = 200;

/** A counter that has reached a threshold. */
interface ThresholdCrossing {
  status: UsageStatus;
  limit: number;
  /** Percent. */
  threshold: number;
}

export type UsageCheckService = ReturnType<typeof createUsageCheckService>;

export function createUsageCheckService(options: UsageCheckServiceOptions) {
  const { database, now = () => new Date(), pageSize = PAGE_SIZE } = options;
  return {
    /**
     * Checks every organization. A counter past its warning threshold or at a soft limit emits `usage.warning`, one at a
     * hard limit `usage.exceeded`, each once per counter, threshold and month, with an email to the owners. One hour into a
     * month the previous month is closed in the ledger.
     *
     * @param from progress of an interrupted check, from which this call continues.
     */
    async check({
      from,
      onProgress,
    }: {
      from?: UsageCheckProgress;
      onProgress?: (progress: UsageCheckProgress) => void;
    }): Promise<UsageCheckProgress> {
      await applyUsageDeltas(database);
      const progress = { after: '', organizations: 0, notified: 0, failed: 0, ...from };
      for (;;) {
        const page = await database.db
          .selectFrom('organizations')
          .select('id')
          .where('id', '>', progress.after)
          .orderBy('id')
          .limit(pageSize)
          .execute();
        const ids = page.map(({ id }) => id);
        const { notified, failed } = await checkPage(options, ids, now());
        progress.notified += notified;
        progress.failed += failed;
        progress.organizations += ids.length;
        progress.after = ids.at(-1) ?? progress.after;
        onProgress?.({ ...progress });
        if (ids.length < pageSize) return progress;
      }
    },
  };
}

/** After this, all changes of the previous month are committed and applied. */
const MONTH_SETTLED_AFTER_MS = 3_600_000;

async function checkPage(
  options: UsageCheckServiceOptions,
  organizationIds: string[],
  now: Date,
): Promise<CheckCounts> {
  const { database } = options;
  const period = monthOf(now);
  const previous = monthOf(new Date(period.start.getTime() - 1));
  const isSettled = now.getTime() - period.start.getTime() >= MONTH_SETTLED_AFTER_MS;
  if (isSettled) await closePeriod(database.db, organizationIds, previous, now);
  const counts = { notified: 0, failed: 0 };
  // Includes thresholds crossed after the previous month's last check.
  for (const month of isSettled ? [period] : [previous, period]) {
    const { notified, failed } = await checkMonth(options, organizationIds, { period: month, now });
    counts.notified += notified;
    counts.failed += failed;
  }
  return counts;
}

interface CheckCounts {
  notified: number;
  failed: number;
}

async function checkMonth(
  options: UsageCheckServiceOptions,
  organizationIds: string[],
  { period, now }: { period: Period; now: Date },
): Promise<CheckCounts> {
  const { database, logger } = options;
  const hasEnded = period.end <= now;
  const statuses = await readUsageStatuses(database.db, {
    organizationIds,
    // The value of storage_bytes at the end of the previous month is not stored.
    ...(hasEnded ? { counters: USAGE_COUNTERS.filter((counter) => counter !== STORAGE_COUNTER) } : {}),
    at: hasEnded ? period.start : now,
  });
  const crossings = await excludeNotified(database.db, statuses.flatMap(findCrossings), period);
  const counts = { notified: 0, failed: 0 };
  for (const [organizationId, ofOrganization] of Map.groupBy(
    crossings,
    ({ status }) => status.organizationId,
  ))
    try {
      counts.notified += await database.systemTransaction((transaction) =>
        notifyThresholds(transaction, options, { crossings: ofOrganization, period, now }),
      );
    } catch (error) {
      // One failure must not stop the check of the other organizations.
      logger.error({ organizationId, err: error }, 'usage notification failed');
      counts.failed += 1;
    }
  return counts;
}

/** Returns the higher threshold last. Without any usage, a limit of 0 is not reached. */
function findCrossings(status: UsageStatus): ThresholdCrossing[] {
  const { current, warningPercent, limit: effective } = status;
  const { limit } = effective;
  if (limit === null || current === 0) return [];
  return [warningPercent, 100]
    .filter((threshold) => 100 * current >= limit * threshold)
    .map((threshold) => ({ status, limit, threshold }));
}

/**
 * Excludes crossings of which the owners have been notified. Takes no lock: `insertAlert` arbitrates between concurrent
 * checks.
 */
async function excludeNotified(
  db: Db,
  crossings: ThresholdCrossing[],
  { start }: Period,
): Promise<ThresholdCrossing[]> {
  if (crossings.length === 0) return [];
  const ids = new Set(crossings.map(({ status }) => status.organizationId));
  const alerts = await db
    .selectFrom('usage_alerts')
    .select(['org_id', 'counter', 'threshold'])
    .where('org_id', '=', anyOf([...ids]))
    .where('period_start', '=', start)
    .execute();
  const keyOf = (...parts: (string | number)[]) => parts.join('/');
  const known = new Set(alerts.map((row) => keyOf(row.org_id, row.counter, row.threshold)));
  return crossings.filter(
    ({ status, threshold }) => !known.has(keyOf(status.organizationId, status.counter, threshold)),
  );
}

interface OrganizationCrossings {
  /** All of the same organization. */
  crossings: ThresholdCrossing[];
  period: Period;
  now: Date;
}

/** Commits alert, ledger entry, event and emails together. Of concurrent checks only one inserts the alert. */
async function notifyThresholds(
  transaction: Transaction,
  options: UsageCheckServiceOptions,
  { crossings, period, now }: OrganizationCrossings,
): Promise<number> {
  const pending: ThresholdCrossing[] = [];
  for (const crossing of crossings)
    if (await insertAlert(transaction.db, crossing, period, now)) pending.push(crossing);
  for (const crossing of pending) {
    await recordCrossing(transaction, options, { crossing, period, now });
    const { status, threshold } = crossing;
    // If both thresholds were crossed since the last check, only the higher one is emailed.
    const isSuperseded = pending.some((other) => other.status === status && other.threshold > threshold);
    if (!isSuperseded) await notifyOwners(transaction, options, crossing, period);
  }
  return pending.length;
}

/** Writes the ledger entry and the event. */
async function recordCrossing(
  transaction: Transaction,
  { events }: UsageCheckServiceOptions,
  { crossing, period, now }: { crossing: ThresholdCrossing; period: Period; now: Date },
): Promise<void> {
  const { db } = transaction;
  const { status, limit, threshold } = crossing;
  const { organizationId, counter, current } = status;
  const data = {
    counter,
    current,
    limit,
    percentage: percentageOf(current, limit),
    threshold,
    period_start: period.start.toISOString(),
    period_end: period.end.toISOString(),
  };
  await recordUsageEvent(db, {
    organizationId,
    counter,
    data,
    at: now,
    kind: 'threshold_crossed',
    actor: 'system',
  });
  const environment = await db
    .selectFrom('environments')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('slug', '=', DEFAULT_ENVIRONMENT_SLUG)
    .executeTakeFirstOrThrow(() => new Error('The organization has no default environment'));
  await events.record(transaction, {
    organizationId,
    environmentId: environment.id,
    inboxId: null,
    data,
    // At a soft limit nothing is refused, so it is never `exceeded`.
    type: threshold === 100 && status.limit.kind === 'hard' ? 'usage.exceeded' : 'usage.warning',
  });
}

async function notifyOwners(
  transaction: Transaction,
  { notifications, isMetered = async () => false }: UsageCheckServiceOptions,
  { status, limit, threshold }: ThresholdCrossing,
  { start, end }: Period,
): Promise<void> {
  const { organizationId, counter, current } = status;
  const { kind, source } = status.limit;
  const isBilled =
    kind === 'soft' && source === 'tier' && (await isMetered(transaction.db, organizationId, counter));
  return notifications.notifyOwners(transaction, {
    organizationId,
    template: threshold === 100 ? 'usage-exceeded' : 'usage-warning',
    params: {
      organizationId,
      counter,
      current,
      limit,
      percentage: percentageOf(current, limit),
      kind,
      isBilled,
      resetsAt: counter === STORAGE_COUNTER ? null : end.toISOString().slice(0, 10),
    },
    dedupeKey: `usage/${organizationId}/${counter}/${threshold}/${start.toISOString()}`,
  });
}

/** @returns false if the owners have already been notified of the crossing. */
async function insertAlert(
  db: Db,
  { status, threshold }: ThresholdCrossing,
  { start }: Period,
  now: Date,
): Promise<boolean> {
  const { organizationId, counter } = status;
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('usage_alerts')
    .values({ org_id: organizationId, counter, threshold, period_start: start, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}
