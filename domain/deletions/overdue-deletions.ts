import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { DeletionPurgeService } from './deletion-purge.service.ts';
import { buildPurgeStart } from './purge-start.ts';

/**
 * Open deletions, each checked once an hour. A missing or failed run starts again. If an operator stopped the run, the row
 * records it, and nothing is purged until an operator resumes the purge.
 */
export function overdueDeletions(
  { db }: Database,
  purges: Pick<DeletionPurgeService, 'stop'>,
): OverdueSource {
  return {
    name: 'deletions',
    async take(limit) {
      const overdue = db
        .selectFrom('deletions')
        .select('id')
        .where('status', 'in', ['waiting', 'purging'])
        .where('deleted_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('deletions')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit, recheckMinutes: 60 }))
        .returning(['id as deletionId', 'kind', 'subject_id as subjectId', 'generation', 'due_at as dueAt'])
        .execute();
      return rows.map((row) => ({
        start: buildPurgeStart(row),
        whenStopped: async () => {
          await purges.stop(row.deletionId);
        },
      }));
    },
  };
}
