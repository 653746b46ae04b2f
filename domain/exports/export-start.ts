import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  EXPORT_ORGANIZATION,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Export } from './export.entity.ts';

/** The start of an export's run; also what the reconciler uses for one that has lost its run. */
export function buildExportStart({
  id,
  organizationId,
}: Pick<Export, 'id' | 'organizationId'>): StartCommand {
  return {
    workflowType: EXPORT_ORGANIZATION,
    workflowId: exportOrganizationWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    input: { exportId: id },
    searchAttributes: { OrgId: organizationId, ResourceId: id, Stage: 'writing' },
    summary: `Export ${organizationId}`,
  };
}
