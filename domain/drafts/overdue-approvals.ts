import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { ApprovalRunService } from './approval-run.service.ts';
import { buildApprovalStart } from './draft-approval.ts';

/**
 * Waiting drafts that should have expired or whose run may be missing. A lost run is restarted; if an operator ended
 * the run, the draft is rejected.
 */
export function overdueApprovals(
  { db }: Database,
  approvals: Pick<ApprovalRunService, 'cancel'>,
): OverdueSource {
  const selectWaiting = () =>
    db.selectFrom('drafts').select('id').where('send_status', '=', 'pending_approval');
  const take = (
    overdue: ReturnType<typeof selectWaiting>,
    options: { limit: number; recheckMinutes?: number },
  ) =>
    db
      .updateTable('drafts')
      .set(RECONCILED)
      .where('id', '=', lockOverdue(overdue, options))
      .returning([
        'id',
        'org_id as organizationId',
        'env_id as environmentId',
        'inbox_id as inboxId',
        'approval_generation as approvalGeneration',
        sql<Date>`approval_expires_at`.as('approvalExpiresAt'),
      ])
      .execute();
  return {
    name: 'approvals',
    async take(limit) {
      const expired = await take(selectWaiting().where('approval_expires_at', '<', minutesAgo(1)), { limit });
      // Waiting drafts are checked hourly, in case an operator ended their run.
      const waiting = await take(
        selectWaiting()
          .where('approval_expires_at', '>', sql<Date>`now()`)
          .where('updated_at', '<', minutesAgo(2)),
        { limit: limit - expired.length, recheckMinutes: 60 },
      );
      return [...expired, ...waiting].map((row) => ({
        start: buildApprovalStart(row, row.approvalExpiresAt),
        whenStopped: () => approvals.cancel(row.id, row.approvalGeneration),
      }));
    },
  };
}
