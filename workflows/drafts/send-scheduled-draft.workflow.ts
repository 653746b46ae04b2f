import {
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { DraftActivities } from '../../activities/drafts.activities.ts';
import {
  RESCHEDULE_DRAFT,
  type SendScheduledDraftInput,
  UNSCHEDULE_DRAFT,
} from './send-scheduled-draft.contract.ts';

const { sendDueDraft, unscheduleDraft: dropDraftPlan } = proxyActivities<DraftActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const reschedule = defineSignal<[string, number]>(RESCHEDULE_DRAFT);
export const unschedule = defineSignal(UNSCHEDULE_DRAFT);

/** Waits for a draft's time and sends it as the API would. The draft's row has the last word on both. */
export async function sendScheduledDraft({
  draftId,
  plan,
  sendAt,
  version,
}: SendScheduledDraftInput): Promise<string> {
  let due = sendAt;
  // Histories of before have no version; any is newer.
  let known = version ?? 0;
  let unscheduled = false;
  setHandler(
    reschedule,
    (at, of) => {
      if (!(of >= known) || Number.isNaN(Date.parse(at))) return;
      known = of;
      due = at;
    },
    { description: 'Sent by the service when the draft’s send_at changes; from here it changes nothing.' },
  );
  setHandler(
    unschedule,
    () => {
      unscheduled = true;
    },
    { description: 'Take the plan off; the draft stays.' },
  );
  try {
    for (;;) {
      const takenOff = await waitForSendTime(
        () => due,
        () => unscheduled,
      );
      if (takenOff) {
        // Changes nothing where the API took it off; from the Temporal UI this is what does.
        await dropDraftPlan({ draftId, plan });
        return 'unscheduled';
      }
      const outcome = await sendDueDraft({ draftId, plan });
      if (typeof outcome === 'string') return outcome;
      due = outcome.waitUntil;
    }
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => dropDraftPlan({ draftId, plan }));
    throw error;
  }
}

/** @returns true where the plan was taken off meanwhile. */
async function waitForSendTime(due: () => string, unscheduled: () => boolean): Promise<boolean> {
  for (;;) {
    const aim = due();
    setCurrentDetails(`Waiting until ${aim}. Signal: unschedule.`);
    const remainingMs = Date.parse(aim) - Date.now();
    if (unscheduled()) return true;
    if (remainingMs <= 0) return false;
    await condition(() => unscheduled() || due() !== aim, remainingMs);
  }
}
