import type { Db } from '../../platform/database/tables.ts';
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
export async function requireStorageQuota(db: Db, organizationId: string, sizeBytes: number): Promise<void> {
  const at = new Date();
  const [status] = await readUsageStatuses(db, {
    organizationIds: [organizationId],
    counters: [STORAGE_COUNTER],
    at,
  });
  if (!status) return;
  const remaining = remainingQuota(status.limit, status.current);
  if (remaining !== null && sizeBytes > remaining)
    throw usageLimitExceeded(STORAGE_COUNTER, status.limit, at);
}
