import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import { type AuditedStaff, recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { PlannedAction, RunAction, RunActionRequest } from './plan-action.ts';

const AUDIT_ACTIONS: Record<RunAction, AuditAction> = {
  retry: 'workflow.retried',
  cancel: 'workflow.canceled',
  terminate: 'workflow.terminated',
  resolve: 'workflow.resolved',
};

export interface ActedRun {
  workflowId: string;
  type: string;
  stage: string | null;
  /** Null for runs that belong to no organization. */
  organizationId: string | null;
}

/**
 * Records the action in the logs of the service and the organization, in one transaction with the command for Temporal,
 * which is dispatched after the commit.
 */
export async function applyAction(
  transaction: Transaction,
  { outbox, staff }: { outbox: Pick<Outbox, 'enqueue'>; staff: AuditedStaff },
  { run, request, planned }: { run: ActedRun; request: RunActionRequest; planned: PlannedAction },
): Promise<void> {
  const { workflowId, type, stage, organizationId } = run;
  const { resolution, recipient } = request;
  const { db } = transaction;
  await recordStaffAudit(db, staff, {
    action: AUDIT_ACTIONS[request.action],
    resourceType: 'workflow',
    resourceId: workflowId,
    organizationIds: await findOrganization(db, organizationId),
    reason: request.note,
    details: {
      type,
      stage,
      effect: planned.effect,
      ...(resolution === undefined ? {} : { resolution }),
      ...(recipient === undefined ? {} : { recipient }),
    },
  });
  outbox.enqueue(transaction, organizationId ?? staff.staffId, planned.command);
}

/** The organization may have been purged since the run began. */
async function findOrganization(db: Db, id: string | null): Promise<string[]> {
  if (id === null) return [];
  const rows = await db.selectFrom('organizations').select('id').where('id', '=', id).execute();
  return rows.map((row) => row.id);
}
