import type { DraftService } from '../domain/drafts/draft.service.ts';
import type { DueDraftResult } from '../domain/drafts/send-draft.ts';
import { withApplicationFailures } from './failures.ts';

interface DraftSchedule {
  draftId: string;
  scheduleVersion: number;
}

export type DraftActivities = ReturnType<typeof createDraftActivities>;

export function createDraftActivities({
  drafts,
}: {
  drafts: Pick<DraftService, 'sendDue' | 'cancelSchedule'>;
}) {
  return {
    sendDueDraft: ({ draftId, scheduleVersion }: DraftSchedule): Promise<DueDraftResult> =>
      withApplicationFailures(() => drafts.sendDue(draftId, scheduleVersion)),

    unscheduleDraft: ({ draftId, scheduleVersion }: DraftSchedule): Promise<void> =>
      withApplicationFailures(() => drafts.cancelSchedule(draftId, scheduleVersion)),
  };
}
