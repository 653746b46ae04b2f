import { proxyActivities } from '@temporalio/workflow';
import type { InboxActivities } from '../../activities/inboxes.activities.ts';
import type { PurgeInboxInput } from './purge-inbox.contract.ts';

const { purgeInboxMail } = proxyActivities<InboxActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

/**
 * Removes the messages, threads and drafts of a deleted inbox, in batches. Repeatable from anywhere; where a message is
 * with the relay just now, the activity's retries are the wait. Terminated, it starts again: the purge was asked for.
 *
 * @returns what was removed by the last attempt, for the Temporal UI.
 */
export async function purgeInbox({ inboxId }: PurgeInboxInput): Promise<string> {
  const { messages, threads } = await purgeInboxMail({ inboxId });
  return `removed ${messages} message(s), ${threads} thread(s)`;
}
