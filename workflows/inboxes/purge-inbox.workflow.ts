import { proxyActivities } from '@temporalio/workflow';
import type { InboxActivities } from '../../activities/inboxes.activities.ts';
import type { PurgeInboxInput } from './purge-inbox.contract.ts';

const { purgeInboxMail } = proxyActivities<InboxActivities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '10 minutes' },
});

/**
 * Deletes the messages, threads and drafts of a deleted inbox, in batches, and can resume at any point. While a message is
 * being sent, the activity is retried. The reconciler restarts a terminated run.
 *
 * @returns what the last attempt deleted, for the Temporal UI.
 */
export async function purgeInbox({ inboxId }: PurgeInboxInput): Promise<string> {
  const { messages, threads } = await purgeInboxMail({ inboxId });
  return `deleted ${messages} message(s), ${threads} thread(s)`;
}
