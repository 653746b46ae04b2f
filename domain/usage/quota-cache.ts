import { LRUCache } from 'lru-cache';
import type { Db } from '../../platform/database/tables.ts';
import type { UsageCounter } from './counters.ts';
import { remainingQuota } from './effective-limit.ts';
import { readUsageStatuses } from './usage-status.ts';

export interface QuotaCacheOptions {
  counter: UsageCounter;
  now?: () => Date;
  /** Maximum time until a new hard limit is noticed. */
  ttlMs?: number;
}

const DEFAULT_TTL_MS = 10_000;
const MAX_CACHED = 10_000;

export type QuotaCache = ReturnType<typeof createQuotaCache>;

/** Remaining quota of one counter, for frequent callers. */
export function createQuotaCache({
  counter,
  now = () => new Date(),
  ttlMs = DEFAULT_TTL_MS,
}: QuotaCacheOptions) {
  /** Organizations without a hard limit, and when that has to be read again. */
  const unlimited = new LRUCache<string, number>({ max: MAX_CACHED });
  return {
    /**
     * @param reserved the share of the limit that this caller must leave to others, 0 to 1.
     * Returns null without a hard limit; this result is cached, so most organizations need no query. Under a hard limit the
     * result is always read from the database.
     */
    async remaining(db: Db, organizationId: string, reserved = 0): Promise<number | null> {
      const time = now();
      if ((unlimited.get(organizationId) ?? 0) > time.getTime()) return null;
      unlimited.delete(organizationId);
      const [status] = await readUsageStatuses(db, {
        organizationIds: [organizationId],
        counters: [counter],
        at: time,
      });
      const remaining = status ? remainingQuota(status.limit, status.current) : null;
      if (status && remaining !== null)
        return Math.max(0, remaining - Math.ceil((status.limit.enforcedLimit ?? 0) * reserved));
      unlimited.set(organizationId, time.getTime() + ttlMs);
      return null;
    },
  };
}
