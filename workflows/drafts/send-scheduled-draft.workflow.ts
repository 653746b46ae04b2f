import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  patched,
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

/** Since it ends attempts that fail; runs that were unscheduled before wait for their end. */
const UNSCHEDULE_ENDS_ATTEMPTS = 'unschedule-ends-attempts';

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
  let sending: CancellationScope | undefined;
  /** @returns undefined if the draft is unscheduled while its attempts fail. */
  const sendUnlessUnscheduled = async () => {
    sending = new CancellationScope();
    try {
      return await sending.run(() => sendDueDraft({ draftId, scheduleVersion }));
    } catch (error) {
      if (!isCancellation(error) || CancellationScope.current().consideredCancelled) throw error;
      return undefined;
    } finally {
      sending = undefined;
    }
  };
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
      if (sending && patched(UNSCHEDULE_ENDS_ATTEMPTS)) sending.cancel();
    },
    { description: 'Unschedules the draft and keeps it.' },
  );
  try {
    for (;;) {
      const outcome = await waitForSendTime(
        () => dueAt,
        () => unscheduled,
      );
      const result = outcome === 'due' ? await sendUnlessUnscheduled() : undefined;
      if (result === undefined) {
        // The API has already updated the row; a signal from the Temporal UI has not.
        await unscheduleDraft({ draftId, scheduleVersion });
        return 'unscheduled';
      }
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
    if (remainingMs <= 0) {
      setCurrentDetails(`Being sent, due since ${target}. Signal: unschedule.`);
      return 'due';
    }
    await condition(() => isUnscheduled() || dueAt() !== target, remainingMs);
  }
}
