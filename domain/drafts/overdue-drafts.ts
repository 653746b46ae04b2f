import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../overdue.ts';
import type { Draft } from './draft.entity.ts';
import type { DraftService } from './draft.service.ts';
import { startOfPlan } from './draft-plan.ts';

type OverdueDraft = Pick<Draft, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'plan'> & {
  sendAt: string | Date;
};

/** Scheduled drafts whose time has passed. A plan an operator stopped is taken off; the draft stays. */
export function overdueDrafts(database: Database, drafts: Pick<DraftService, 'dropPlan'>): OverdueSource {
  return {
    name: 'drafts',
    async take(limit) {
      const rows = await takeOverdue<OverdueDraft>(database, {
        table: 'drafts',
        overdue: `send_status = 'scheduled' and send_at < now() - interval '1 minute'`,
        columns: `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId", plan,
          send_at as "sendAt"`,
        limit,
      });
      return rows.map((row) => ({
        start: startOfPlan(row, new Date(row.sendAt)),
        whenStopped: () => drafts.dropPlan(row.id, row.plan),
      }));
    },
  };
}
