import type { DraftService } from '../domain/drafts/draft.service.ts';
import { withApplicationFailures } from './failures.ts';

export type DraftActivities = ReturnType<typeof createDraftActivities>;

export function createDraftActivities({
  drafts,
}: {
  drafts: Pick<DraftService, 'sendDue' | 'cancelSchedule'>;
}) {
  return {
    /** Sends a draft whose time has come; answers the time to wait for where the plan has moved. */
    sendDueDraft: ({
      draftId,
      plan,
    }: {
      draftId: string;
      plan: number;
    }): Promise<{ waitUntil: string } | 'sent' | 'refused' | 'gone'> =>
      withApplicationFailures(() => drafts.sendDue(draftId, plan)),

    unscheduleDraft: ({ draftId, plan }: { draftId: string; plan: number }): Promise<void> =>
      withApplicationFailures(() => drafts.cancelSchedule(draftId, plan)),
  };
}
