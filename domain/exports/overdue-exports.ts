import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { Export } from './export.entity.ts';
import type { ExportRunner } from './export-runner.ts';
import { startOfExport } from './export-start.ts';

/** Exports that have lost their run. One an operator ended is canceled, and leaves nothing in storage. */
export function overdueExports(database: Database, runner: Pick<ExportRunner, 'giveUp'>): OverdueSource {
  return {
    name: 'exports',
    async take(limit) {
      const rows = await takeOverdue<Pick<Export, 'id' | 'organizationId'>>(database, {
        table: 'exports',
        overdue: `status in ('queued', 'running') and updated_at < now() - interval '2 minutes'`,
        columns: 'id, org_id as "organizationId"',
        limit,
      });
      return rows.map((row) => ({
        start: startOfExport(row),
        whenStopped: async () => {
          await runner.giveUp(row.id, 'canceled', 'Stopped by an operator.');
        },
      }));
    },
  };
}
