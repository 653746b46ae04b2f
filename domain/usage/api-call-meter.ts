import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { AppError } from '../../platform/errors.ts';
import { type EffectiveLimit, effectiveLimit, roomWithin } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-exceeded.ts';
import { type FactsRow, readFacts } from './limit-facts.ts';
import { monthOf } from './periods.ts';

/**
 * Counts the calls of each organization in memory and writes them once a second at most, so that a request pays
 * nothing for it. What a crash may lose is that second; what several processes may let through beyond a limit, too.
 */
export interface ApiCallMeter {
  /** A call that was answered. */
  count(organizationId: string): void;
  /** What a call is refused with, as far as this process knows; undefined while there is room. */
  refusal(organizationId: string): AppError | undefined;
  /** Writes what was counted, and learns where its organizations stand. One at a time; another one waits for it. */
  flush(): Promise<void>;
  /** Writes the rest. */
  close(): Promise<void>;
}

export interface ApiCallMeterOptions {
  database: Pick<Database, 'statement'>;
  logger: Logger;
  now?: () => Date;
  flushEveryMs?: number;
}

/** Where an organization stood when its calls were last written; only kept where it has a hard limit. */
interface KnownStanding {
  limit: EffectiveLimit;
  current: number;
  periodEndMs: number;
}

interface CallsRow extends FactsRow {
  org_id: string;
  current: number;
}

const FLUSH_EVERY_MS = 1_000;

const COUNT = `select org_id, tier, override_kind, override_amount::float8 as override_amount,
  own_amount::float8 as own_amount, current::float8 as current from count_api_calls(?::jsonb, ?::timestamptz, ?::timestamptz)`;

export function createApiCallMeter({
  database,
  logger,
  now = () => new Date(),
  flushEveryMs = FLUSH_EVERY_MS,
}: ApiCallMeterOptions): ApiCallMeter {
  /** Calls not written yet; 0 asks only where the organization stands. */
  let unwritten = new Map<string, number>();
  const standings = new Map<string, KnownStanding>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let flushing = Promise.resolve();

  function add(organizationId: string, calls: number): void {
    unwritten.set(organizationId, (unwritten.get(organizationId) ?? 0) + calls);
    // What could not be written at the end has nobody to write it.
    if (!closed) timer ??= setTimeout(() => void flush(), flushEveryMs).unref();
  }

  async function write(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const calls = unwritten;
    if (calls.size === 0) return;
    unwritten = new Map();
    const time = now();
    const { start, end } = monthOf(time);
    try {
      const rows = await database.statement<CallsRow>(COUNT, [
        JSON.stringify(Object.fromEntries(calls)),
        time.toISOString(),
        start.toISOString(),
      ]);
      for (const row of rows) learn(row, end);
    } catch (error) {
      logger.warn({ err: error }, 'api calls could not be written, and are kept');
      for (const [organizationId, count] of calls) add(organizationId, count);
    }
  }

  function learn(row: CallsRow, periodEnd: Date): void {
    const limit = effectiveLimit('api_calls', readFacts(row));
    if (roomWithin(limit, row.current) === null) standings.delete(row.org_id);
    else standings.set(row.org_id, { limit, current: row.current, periodEndMs: periodEnd.getTime() });
  }

  function flush(): Promise<void> {
    flushing = flushing.then(write);
    return flushing;
  }

  return {
    count: (organizationId) => add(organizationId, 1),

    refusal(organizationId) {
      const standing = standings.get(organizationId);
      if (!standing) return undefined;
      const time = now();
      if (time.getTime() >= standing.periodEndMs) {
        standings.delete(organizationId);
        return undefined;
      }
      const current = standing.current + (unwritten.get(organizationId) ?? 0);
      if (roomWithin(standing.limit, current) !== 0) return undefined;
      // Nothing is counted of it, and still its limit may be raised.
      add(organizationId, 0);
      return usageLimitExceeded('api_calls', standing.limit, time);
    },

    flush,

    async close() {
      closed = true;
      clearTimeout(timer);
      await flush();
    },
  };
}
