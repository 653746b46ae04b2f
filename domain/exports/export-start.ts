import type { Database } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import {
  EXPORT_ORGANIZATION,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { type Export, UNFINISHED_STATUSES } from './export.entity.ts';
import type { ExportRunner } from './export-runner.ts';

/** Starts an export's run. */
export function buildExportStart({
  id,
  organizationId,
}: Pick<Export, 'id' | 'organizationId'>): StartCommand {
  return {
    workflowType: EXPORT_ORGANIZATION,
    workflowId: exportOrganizationWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: organizationId },
    input: { exportId: id },
    searchAttributes: { OrgId: organizationId, ResourceId: id, Stage: 'writing' },
    summary: `Export of ${organizationId}`,
  };
}

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
        .where('status', 'in', UNFINISHED_STATUSES)
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
