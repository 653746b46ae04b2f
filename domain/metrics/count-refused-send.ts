import type { Db } from '../../platform/database/tables.ts';
import { startOfHour } from './metric-range.ts';

/** Counts a send that was refused before a message was created. */
export async function countRefusedSend(
  db: Db,
  inbox: { id: string; organizationId: string; environmentId: string },
  at: Date,
): Promise<void> {
  await db
    .insertInto('metric_deltas')
    .values({
      org_id: inbox.organizationId,
      env_id: inbox.environmentId,
      inbox_id: inbox.id,
      hour: startOfHour(at),
      rejected: 1,
    })
    .execute();
}
