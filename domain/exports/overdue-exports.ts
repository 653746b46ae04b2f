import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { Export } from './export.entity.ts';
import type { ExportRunner } from './export-runner.ts';
import { buildExportStart } from './export-start.ts';

/**
 * Exports without a running workflow. If an operator stopped the run, the export is canceled and its upload removed.
 */
export function overdueExports(database: Database, runner: Pick<ExportRunner, 'abort'>): OverdueSource {
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
        start: buildExportStart(row),
        whenStopped: async () => {
          await runner.abort(row.id, 'canceled', 'Stopped by an operator.');
        },
      }));
    },
  };
}
