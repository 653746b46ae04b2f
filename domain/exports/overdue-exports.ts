import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { ExportRunner } from './export-runner.ts';
import { buildExportStart } from './export-start.ts';

/**
 * Exports without a running workflow. If an operator stopped the run, the export is canceled and its upload removed.
 */
export function overdueExports({ db }: Database, runner: Pick<ExportRunner, 'abort'>): OverdueSource {
  return {
    name: 'exports',
    async take(limit) {
      const overdue = db
        .selectFrom('exports')
        .select('id')
        .where('status', 'in', ['queued', 'running'])
        .where('updated_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('exports')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId'])
        .execute();
      return rows.map((row) => ({
        start: buildExportStart(row),
        whenStopped: async () => {
          await runner.abort(row.id, 'canceled', 'Stopped by an operator.');
        },
      }));
    },
  };
}
