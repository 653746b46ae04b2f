import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { DeletionKind } from './deletion.entity.ts';
import type { PurgeService } from './purge.service.ts';
import { buildPurgeStart } from './purge-start.ts';

interface OpenDeletion {
  deletionId: string;
  kind: DeletionKind;
  subjectId: string;
  episode: number;
  dueAt: string;
}

/**
 * Open deletions, each checked once an hour: a missing or failed run starts again. If an operator stopped the run, the row
 * says so, and nothing is purged until an operator resumes it.
 */
export function overdueDeletions(database: Database, purges: Pick<PurgeService, 'stop'>): OverdueSource {
  return {
    name: 'deletions',
    async take(limit) {
      const rows = await takeOverdue<OpenDeletion>(database, {
        table: 'deletions',
        overdue: `status in ('waiting', 'purging') and deleted_at < now() - interval '2 minutes'`,
        columns: 'id as "deletionId", kind, subject_id as "subjectId", episode, due_at as "dueAt"',
        limit,
        recheckDelay: '1 hour',
      });
      return rows.map((row) => ({
        start: buildPurgeStart({ ...row, dueAt: new Date(row.dueAt) }),
        whenStopped: async () => {
          await purges.stop(row.deletionId);
        },
      }));
    },
  };
}
