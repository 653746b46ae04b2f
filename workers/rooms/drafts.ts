import { createApprovalActivities } from '../../activities/approvals.activities.ts';
import { createDraftActivities } from '../../activities/drafts.activities.ts';
import { createApprovalRunService } from '../../domain/drafts/approval-run.service.ts';
import { purgeApprovedRecipients } from '../../domain/drafts/approved-recipient.service.ts';
import { releaseAllHeldDrafts } from '../../domain/drafts/held-drafts.ts';
import { overdueApprovals } from '../../domain/drafts/overdue-approvals.ts';
import { overdueDrafts } from '../../domain/drafts/overdue-drafts.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const createApprovals = ({ database, services: { events, notifications } }: WorkerDependencies) =>
  createApprovalRunService({ database, events, notifications });

export const draftsRoom: Room = {
  activities: {
    [OUTBOUND_QUEUE]: (dependencies) => ({
      ...createDraftActivities({ drafts: dependencies.services.drafts }),
      ...createApprovalActivities({ approvals: createApprovals(dependencies) }),
    }),
  },
  maintenance: (dependencies) => {
    const { database, outbox, services } = dependencies;
    const approvals = createApprovals(dependencies);
    return {
      overdue: [overdueDrafts(database, services.drafts), overdueApprovals(database, approvals)],
      sweeps: {
        releasedDrafts: () => releaseAllHeldDrafts(database, outbox),
        announcedApprovals: () => approvals.announceRest(),
        expiredRecipientApprovals: () => purgeApprovedRecipients(database),
      },
    };
  },
};
