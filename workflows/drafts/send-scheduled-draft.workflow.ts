import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { DraftActivities } from '../../activities/drafts.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { HELD_FAILURE } from '../outbound/send-message.contract.ts';
import {
  RESCHEDULE_DRAFT,
  type SendScheduledDraftInput,
  UNSCHEDULE_DRAFT,
} from './send-scheduled-draft.contract.ts';

const { sendDueDraft, unscheduleDraft } = proxyActivities<DraftActivities>(DATABASE_STEP);

export const reschedule = defineSignal<[string, number]>(RESCHEDULE_DRAFT);
export const unschedule = defineSignal(UNSCHEDULE_DRAFT);

/** Waits for a draft's `send_at` and sends it as the API would. The draft's row decides whether and when. */
export async function sendScheduledDraft({
  draftId,
  scheduleVersion,
  sendAt,
  version,
}: SendScheduledDraftInput): Promise<string> {
  let dueAt = sendAt;
  let latestVersion = version;
  let unscheduled = false;
  setHandler(
    reschedule,
    (newSendAt, draftVersion) => {
      // An operator may send the signal without a version; the comparison with undefined is false.
      if (!(draftVersion >= latestVersion) || Number.isNaN(Date.parse(newSendAt))) return;
      latestVersion = draftVersion;
      dueAt = newSendAt;
    },
    {
      description:
        'Sent by the service when the draft’s send_at changes. Does not change the draft; use the API to reschedule.',
    },
  );
  setHandler(
    unschedule,
    () => {
      unscheduled = true;
    },
    { description: 'Unschedules the draft and keeps it.' },
  );
  try {
    for (;;) {
      const outcome = await waitForSendTime(
        () => dueAt,
        () => unscheduled,
      );
      if (outcome === 'unscheduled') {
        // The API has already updated the row; a signal from the Temporal UI has not.
        await unscheduleDraft({ draftId, scheduleVersion });
        return 'unscheduled';
      }
      const result = await sendDueDraft({ draftId, scheduleVersion });
      if (result === 'held') throw heldBySuspension();
      if (typeof result === 'string') return result;
      dueAt = result.waitUntil;
    }
  } catch (error) {
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => unscheduleDraft({ draftId, scheduleVersion }));
    throw error;
  }
}

/** Fails the run, because only a failed run can be started again under the schedule's id when the suspension ends. */
function heldBySuspension(): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    'The organization, environment or inbox is suspended. The draft is held; reinstatement starts another run.',
    HELD_FAILURE,
  );
}

async function waitForSendTime(
  dueAt: () => string,
  isUnscheduled: () => boolean,
): Promise<'due' | 'unscheduled'> {
  for (;;) {
    const target = dueAt();
    setCurrentDetails(`Waiting until ${target}. Signal: unschedule.`);
    const remainingMs = Date.parse(target) - Date.now();
    if (isUnscheduled()) return 'unscheduled';
    if (remainingMs <= 0) return 'due';
    await condition(() => isUnscheduled() || dueAt() !== target, remainingMs);
  }
}
