import { proxyActivities, setCurrentDetails, sleep } from '@temporalio/workflow';
import type { AnnouncementActivities } from '../../activities/announcements.activities.ts';
import type { MailAnnouncementInput } from './mail-announcement.contract.ts';

const { mailOwners } = proxyActivities<AnnouncementActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '5 minutes' },
});

/**
 * Mails an announcement to owners, in batches, once each. The row knows who has been mailed, so that a retry, and a run that
 * the reconciler starts again, continue there. Ends without emails if the announcement is withdrawn meanwhile.
 *
 * @returns how it ended, for the Temporal UI.
 */
export async function mailAnnouncement({ announcementId, startsAt }: MailAnnouncementInput): Promise<string> {
  const delayMs = Date.parse(startsAt) - Date.now();
  if (delayMs > 0) {
    setCurrentDetails(`Waits until ${startsAt}. Withdraw the announcement to stop it.`);
    await sleep(delayMs);
  }
  setCurrentDetails('See Pending Activities for the number of emails.');
  const result = await mailOwners({ announcementId });
  setCurrentDetails(result);
  return result;
}
