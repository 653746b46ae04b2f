import type { ApprovalRunService, SettledApproval } from '../domain/drafts/approval-run.service.ts';
import { withApplicationFailures } from './failures.ts';

interface ApprovalEpisode {
  draftId: string;
  episode: number;
}

export type ApprovalActivities = ReturnType<typeof createApprovalActivities>;

export function createApprovalActivities({ approvals }: { approvals: ApprovalRunService }) {
  return {
    announceApproval: ({ draftId }: ApprovalEpisode): Promise<void> =>
      withApplicationFailures(() => approvals.announce(draftId)),

    settleApproval: ({ draftId, episode }: ApprovalEpisode): Promise<SettledApproval> =>
      withApplicationFailures(() => approvals.settle(draftId, episode)),

    cancelApproval: ({ draftId, episode }: ApprovalEpisode): Promise<void> =>
      withApplicationFailures(() => approvals.cancel(draftId, episode)),
  };
}
