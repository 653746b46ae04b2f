import type { DraftService } from '../domain/drafts/draft.service.ts';
import { asFailure } from './failures.ts';

export type DraftActivities = ReturnType<typeof createDraftActivities>;

export function createDraftActivities({ drafts }: { drafts: Pick<DraftService, 'sendDue' | 'dropPlan'> }) {
  return {
    /** Sends a draft whose time has come; answers the time to wait for where the plan has moved. */
    sendDueDraft: ({
      draftId,
      plan,
    }: {
      draftId: string;
      plan: number;
    }): Promise<{ waitUntil: string } | 'sent' | 'refused' | 'gone'> =>
      asFailure(() => drafts.sendDue(draftId, plan)),

    dropDraftPlan: ({ draftId, plan }: { draftId: string; plan: number }): Promise<void> =>
      asFailure(() => drafts.dropPlan(draftId, plan)),
  };
}
