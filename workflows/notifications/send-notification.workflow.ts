import {
  ActivityCancellationType,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
} from '@temporalio/workflow';
import type { NotificationActivities } from '../../activities/notifications.activities.ts';
import type { SendNotificationInput } from './send-notification.contract.ts';

const { attemptNotification } = proxyActivities<NotificationActivities>({
  // A relay may take ten minutes for its last answer (RFC 5321 section 4.5.3.2.6); the rest is for the database.
  startToCloseTimeout: '12 minutes',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  // Of an attempt that broke; a mail the relay put off names the time of the next itself.
  retry: { initialInterval: '5 seconds', maximumInterval: '5 minutes' },
});
const { stopNotification } = proxyActivities<NotificationActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/**
 * A mail of the service itself: handed to the relay once, tried again for a day while the relay puts it off.
 *
 * @returns what became of it, for the Temporal UI.
 */
export async function sendNotification({ notificationId }: SendNotificationInput): Promise<string> {
  setCurrentDetails('Attempts and the answers of the relay are under Pending Activities.');
  try {
    return await attemptNotification({ notificationId });
  } catch (error) {
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => stopNotification({ notificationId }));
    throw error;
  }
}
