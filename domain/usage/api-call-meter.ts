import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { AppError } from '../../platform/errors.ts';
import type { Tier } from '../organizations/tier.ts';
import { type EffectiveLimit, effectiveLimit, remainingQuota } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-errors.ts';
import { type LimitInputsRow, toLimitInputs } from './limit-inputs.ts';
import { monthOf } from './periods.ts';
import type { LimitKind } from './tiers.ts';

export interface ApiCallMeterOptions {
  database: Pick<Database, 'db'>;
  logger: Logger;
  now?: () => Date;
  flushIntervalMs?: number;
}

/** Usage at the last write; only for organizations with a hard limit. */
interface LastKnownUsage {
  limit: EffectiveLimit;
  current: number;
  periodEndMs: number;
}

/** What the SQL function `count_api_calls` returns. */
interface CallsColumns {
  org_id: string;
  tier: Tier;
  override_kind: LimitKind | null;
  override_amount: number | null;
  custom_amount: number | null;
  current: number;
}

interface CallsRow extends LimitInputsRow {
  organizationId: string;
  current: number;
}

const DEFAULT_FLUSH_INTERVAL_MS = 1_000;

function countCalls(db: Db, calls: ReadonlyMap<string, number>, at: Date): Promise<CallsRow[]> {
  const { start } = monthOf(at);
  return db
    .selectFrom(
      sql<CallsColumns>`count_api_calls(${JSON.stringify(Object.fromEntries(calls))}::jsonb, ${at}::timestamptz, ${start}::timestamptz)`.as(
        'counted',
      ),
    )
    .select([
      'org_id as organizationId',
      'tier',
      'override_kind as overrideKind',
      'override_amount as overrideAmount',
      'custom_amount as customAmount',
      'current',
    ])
    .execute();
}

export type ApiCallMeter = ReturnType<typeof createApiCallMeter>;

/**
 * Counts API calls per organization in memory and writes them at most once a second, so that counting adds no latency
 * to a request. A crash loses up to one second of counts; several processes together can exceed a limit by as much.
 */
export function createApiCallMeter({
  database,
  logger,
  now = () => new Date(),
  flushIntervalMs = DEFAULT_FLUSH_INTERVAL_MS,
}: ApiCallMeterOptions) {
  /** Calls not written yet; an entry of 0 only refreshes the known usage. */
  let pendingCalls = new Map<string, number>();
  const lastKnown = new Map<string, LastKnownUsage>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let flushing = Promise.resolve();

  function add(organizationId: string, calls: number): void {
    pendingCalls.set(organizationId, (pendingCalls.get(organizationId) ?? 0) + calls);
    // After close() nothing would run the timer's flush.
    if (!closed) timer ??= setTimeout(() => void flush(), flushIntervalMs).unref();
  }

  async function writePending(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const calls = pendingCalls;
    if (calls.size === 0) return;
    pendingCalls = new Map();
    const time = now();
    try {
      for (const row of await countCalls(database.db, calls, time)) updateLastKnown(row, monthOf(time).end);
    } catch (error) {
      logger.warn({ err: error }, 'could not write API call counts; the next flush retries');
      for (const [organizationId, count] of calls) add(organizationId, count);
    }
  }

  function updateLastKnown(row: CallsRow, periodEnd: Date): void {
    const limit = effectiveLimit('api_calls', toLimitInputs(row));
    if (remainingQuota(limit, row.current) === null) lastKnown.delete(row.organizationId);
    else lastKnown.set(row.organizationId, { limit, current: row.current, periodEndMs: periodEnd.getTime() });
  }

  /** Writes the pending counts and refreshes the known usage of their organizations. Calls are serialized. */
  function flush(): Promise<void> {
    flushing = flushing.then(writePending);
    return flushing;
  }

  return {
    /** Counts one answered call. */
    count: (organizationId: string): void => add(organizationId, 1),

    /** Returns the error for a call over the limit, based on the last known usage; undefined below the limit. */
    findRefusal(organizationId: string): AppError | undefined {
      const usage = lastKnown.get(organizationId);
      if (!usage) return undefined;
      const time = now();
      if (time.getTime() >= usage.periodEndMs) {
        lastKnown.delete(organizationId);
        return undefined;
      }
      const current = usage.current + (pendingCalls.get(organizationId) ?? 0);
      if (remainingQuota(usage.limit, current) !== 0) return undefined;
      // A refused call is not counted, but the refresh notices a raised limit.
      add(organizationId, 0);
      return usageLimitExceeded('api_calls', usage.limit, time);
    },

    flush,

    /** Stops the timer and writes the remaining counts. */
    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      await flush();
    },
  };
}
