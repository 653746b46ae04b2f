import { condition, proxyActivities, setHandler } from '@temporalio/workflow';
import { unschedule } from '../../workflows/drafts/send-scheduled-draft.workflow.ts';

const { checkDraft } = proxyActivities<{ checkDraft(): Promise<void> }>({
  startToCloseTimeout: '10 seconds',
});

/** `sendScheduledDraft` as a version of the service might have had it: with an activity before the wait. */
export async function sendScheduledDraft(): Promise<string> {
  let isUnscheduled = false;
  setHandler(unschedule, () => {
    isUnscheduled = true;
  });
  await checkDraft();
  await condition(() => isUnscheduled, '2 hours');
  return 'unscheduled';
}
