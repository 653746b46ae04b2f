import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../database/database.ts';

/**
 * A token bucket that all processes share. Packages (`rate-limiter-flexible`, `@fastify/rate-limit`) write to the shared
 * store for each request; this limiter leases tokens in blocks.
 */
export interface RateLimit {
  perSecond: number;
  burst: number;
}

export interface RateVerdict {
  allowed: boolean;
  /** Capacity of the bucket. */
  limit: number;
  /** Estimated requests left; other processes may use the same bucket. */
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until another request may pass; 0 if this one was allowed. */
  retryAfterSeconds: number;
}

/** Takes up to `count` tokens from the shared bucket. Returns the number of granted tokens. */
export type LeaseTokens = (bucket: string, limit: RateLimit, count: number) => Promise<number>;

export interface RateLimiter {
  take(bucket: string, limit: RateLimit): Promise<RateVerdict>;
}

export interface RateLimiterOptions {
  lease: LeaseTokens;
  logger: Logger;
  now?: () => number;
}

interface Bucket {
  /** Leased but not yet used; negative while requests run ahead of the lease. */
  tokens: number;
  lease: Promise<void> | undefined;
  /** The shared bucket was empty; no lease can succeed before this time. */
  emptyUntil: number;
  /** Tokens that the shared bucket would have if this process were the only one; for the headers. */
  estimate: number;
  usedAt: number;
}

const EVICT_AT_SIZE = 10_000;

/**
 * Token buckets in PostgreSQL. Processes lease blocks of a tenth of the burst, so most requests need no write: a request
 * uses the current block, or up to one block of credit while the next one is being leased. Only a process that has used
 * up its credit waits for the lease.
 *
 * Overshoot: each API process allows at most one block (10 % of the burst) more than the shared bucket granted.
 * Undershoot: each process holds at most one leased, unused block. While PostgreSQL is unreachable all requests pass,
 * because they cannot do any work anyway.
 */
export function createRateLimiter({ lease, logger, now = Date.now }: RateLimiterOptions): RateLimiter {
  const buckets = new Map<string, Bucket>();

  function findBucket(id: string, limit: RateLimit): Bucket {
    let bucket = buckets.get(id);
    if (!bucket) {
      if (buckets.size >= EVICT_AT_SIZE) evictIdle(buckets, now());
      bucket = { tokens: 0, lease: undefined, emptyUntil: 0, estimate: limit.burst, usedAt: now() };
      buckets.set(id, bucket);
    }
    const refilled = ((now() - bucket.usedAt) / 1000) * limit.perSecond;
    bucket.estimate = Math.min(limit.burst, bucket.estimate + refilled);
    bucket.usedAt = now();
    return bucket;
  }

  function fetchBlock(id: string, bucket: Bucket, limit: RateLimit): Promise<void> {
    const block = blockSize(limit);
    const requested = block - Math.min(0, bucket.tokens);
    bucket.lease ??= lease(id, limit, requested)
      .then((granted) => {
        bucket.tokens += granted;
        if (granted === requested) return;
        bucket.estimate = Math.min(bucket.estimate, Math.max(0, bucket.tokens));
        bucket.emptyUntil = now() + ((block / 2) * 1000) / limit.perSecond;
      })
      .catch((error: unknown) => {
        bucket.tokens += requested;
        logger.warn({ err: error }, 'could not lease rate limit tokens');
      })
      .finally(() => {
        bucket.lease = undefined;
      });
    return bucket.lease;
  }

  return {
    async take(id, limit) {
      const bucket = findBucket(id, limit);
      const credit = blockSize(limit);
      while (bucket.tokens <= -credit) {
        if (now() < bucket.emptyUntil) return buildVerdict(bucket, limit, false);
        await fetchBlock(id, bucket, limit);
      }
      bucket.tokens -= 1;
      bucket.estimate = Math.max(0, bucket.estimate - 1);
      if (bucket.tokens <= 0 && now() >= bucket.emptyUntil) void fetchBlock(id, bucket, limit);
      return buildVerdict(bucket, limit, true);
    },
  };
}

/** Leases with the SQL function `lease_rate_tokens`: one statement and one short row lock. */
export function leaseFromDatabase(database: Database): LeaseTokens {
  return async (bucket, { burst, perSecond }, count) => {
    const row = await database.db
      .selectNoFrom(sql<number>`lease_rate_tokens(${bucket}, ${burst}, ${perSecond}, ${count})`.as('granted'))
      .executeTakeFirst();
    return row?.granted ?? 0;
  };
}

/** For limits local to one process. */
export function leaseFromMemory(now: () => number = Date.now): LeaseTokens {
  const levels = new Map<string, { tokens: number; usedAt: number }>();
  return async (bucket, { burst, perSecond }, count) => {
    const at = now();
    const level = levels.get(bucket) ?? { tokens: burst, usedAt: at };
    const available = Math.min(burst, level.tokens + ((at - level.usedAt) / 1000) * perSecond);
    const granted = Math.max(0, Math.min(count, Math.floor(available)));
    levels.delete(bucket);
    levels.set(bucket, { tokens: available - granted, usedAt: at });
    for (const [id, { usedAt }] of levels) {
      if (levels.size < EVICT_AT_SIZE || at - usedAt < 60_000) break;
      levels.delete(id);
    }
    return granted;
  };
}

function blockSize({ burst }: RateLimit): number {
  return Math.max(1, Math.floor(burst / 10));
}

function buildVerdict(bucket: Bucket, limit: RateLimit, allowed: boolean): RateVerdict {
  const remaining = Math.floor(bucket.estimate);
  return {
    allowed,
    limit: limit.burst,
    remaining: allowed ? remaining : 0,
    resetSeconds: Math.ceil((limit.burst - remaining) / limit.perSecond),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil(1 / limit.perSecond)),
  };
}

/** A bucket idle for a minute is practically full again, so it can be dropped. */
function evictIdle(buckets: Map<string, Bucket>, now: number): void {
  for (const [id, bucket] of buckets) if (now - bucket.usedAt > 60_000) buckets.delete(id);
}
