import type { EntityManager } from '@mikro-orm/postgresql';
import { STORAGE_COUNTER } from './counters.ts';
import { remainingQuota } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-errors.ts';
import { readUsageStatuses } from './usage-status.ts';

/**
 * Checks the storage quota before bytes are stored. Concurrent uploads can together exceed it by their sizes; the
 * counter itself stays exact.
 *
 * @throws AppError `usage_limit_exceeded`.
 */
export async function requireStorageQuota(
  em: EntityManager,
  organizationId: string,
  sizeBytes: number,
): Promise<void> {
  const now = new Date();
  const [status] = await readUsageStatuses(em, {
    organizationIds: [organizationId],
    counters: [STORAGE_COUNTER],
    at: now,
  });
  const remaining = status ? remainingQuota(status.limit, status.current) : null;
  if (status && remaining !== null && sizeBytes > remaining)
    throw usageLimitExceeded(STORAGE_COUNTER, status.limit, now);
}
