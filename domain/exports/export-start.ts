import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  EXPORT_ORGANIZATION,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Export } from './export.entity.ts';

/** Starts an export's run. The reconciler uses it too, for exports without a running workflow. */
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
