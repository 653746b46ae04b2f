import type { EntityManager } from '@mikro-orm/postgresql';
import { LEVEL_COUNTER } from './counters.ts';
import { roomWithin } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-exceeded.ts';
import { readStandings } from './standings.ts';

/**
 * Belongs before bytes are stored. Several at once may go beyond by what each of them is; the level is exact all the
 * same.
 *
 * @throws AppError `usage_limit_exceeded`.
 */
export async function requireStorageRoom(
  em: EntityManager,
  organizationId: string,
  sizeBytes: number,
): Promise<void> {
  const now = new Date();
  const [standing] = await readStandings(em, {
    organizationIds: [organizationId],
    counters: [LEVEL_COUNTER],
    now,
  });
  const room = standing ? roomWithin(standing.limit, standing.current) : null;
  if (standing && room !== null && sizeBytes > room)
    throw usageLimitExceeded(LEVEL_COUNTER, standing.limit, now);
}
