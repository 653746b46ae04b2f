import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { ApprovalRunService } from './approval-run.service.ts';
import type { Draft } from './draft.entity.ts';
import { buildApprovalStart } from './draft-approval.ts';

type OverdueApproval = Pick<
  Draft,
  'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'approvalEpisode'
> & { approvalExpiresAt: string };

const COLUMNS = `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
  approval_episode as "approvalEpisode", approval_expires_at as "approvalExpiresAt"`;
const EXPIRED = `send_status = 'pending_approval' and approval_expires_at < now() - interval '1 minute'`;
/** Checked hourly, in case an operator ended their run. */
const WAITING = `send_status = 'pending_approval' and approval_expires_at > now()
  and updated_at < now() - interval '2 minutes'`;

/**
 * Drafts that should have expired, or whose run may be gone. A lost run starts again; if an operator ended it, the draft
 * is rejected.
 */
export function overdueApprovals(
  database: Database,
  approvals: Pick<ApprovalRunService, 'cancel'>,
): OverdueSource {
  return {
    name: 'approvals',
    async take(limit) {
      const query = { table: 'drafts', columns: COLUMNS };
      const expired = await takeOverdue<OverdueApproval>(database, { ...query, overdue: EXPIRED, limit });
      const waiting = await takeOverdue<OverdueApproval>(database, {
        ...query,
        overdue: WAITING,
        limit: limit - expired.length,
        recheckDelay: '1 hour',
      });
      return [...expired, ...waiting].map((row) => ({
        start: buildApprovalStart(row, new Date(row.approvalExpiresAt)),
        whenStopped: () => approvals.cancel(row.id, row.approvalEpisode),
      }));
    },
  };
}
