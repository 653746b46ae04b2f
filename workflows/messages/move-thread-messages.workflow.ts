import { proxyActivities } from '@temporalio/workflow';
import type { MessageActivities } from '../../activities/messages.activities.ts';
import type { MoveThreadMessagesInput } from './move-thread-messages.contract.ts';

const { moveMergedMessages } = proxyActivities<MessageActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '5 seconds', maximumInterval: '5 minutes' },
});

/**
 * Moves the remaining messages of a merged thread to the living one, in batches, and can resume at any point. The
 * reconciler restarts a terminated run.
 *
 * @returns what the last attempt moved, for the Temporal UI.
 */
export async function moveThreadMessages({ threadId }: MoveThreadMessagesInput): Promise<string> {
  const moved = await moveMergedMessages({ threadId });
  return `moved ${moved} message(s)`;
}
