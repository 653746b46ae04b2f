import type { ApprovalRunService, SettledApproval } from '../domain/drafts/approval-run.service.ts';
import { withApplicationFailures } from './failures.ts';

interface ApprovalGeneration {
  draftId: string;
  generation: number;
}

export type ApprovalActivities = ReturnType<typeof createApprovalActivities>;

export function createApprovalActivities({ approvals }: { approvals: ApprovalRunService }) {
  return {
    announceApproval: ({ draftId }: ApprovalGeneration): Promise<void> =>
      withApplicationFailures(() => approvals.announce(draftId)),

    settleApproval: ({ draftId, generation }: ApprovalGeneration): Promise<SettledApproval> =>
      withApplicationFailures(() => approvals.settle(draftId, generation)),

    cancelApproval: ({ draftId, generation }: ApprovalGeneration): Promise<void> =>
      withApplicationFailures(() => approvals.cancel(draftId, generation)),
  };
}
