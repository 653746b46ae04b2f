import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
} from '@temporalio/workflow';
import type { NotificationActivities } from '../../activities/notifications.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { findCancellation } from '../find-cancellation.ts';
import type { SendNotificationInput } from './send-notification.contract.ts';

const { attemptNotification } = proxyActivities<NotificationActivities>({
  // Ten minutes for the relay's final reply (RFC 5321 section 4.5.3.2.6), and the rest for the database.
  startToCloseTimeout: '12 minutes',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  // For unexpected errors. A deferral sets its own retry delay.
  retry: { initialInterval: '5 seconds', maximumInterval: '5 minutes' },
});
const { stopNotification } = proxyActivities<NotificationActivities>(DATABASE_STEP);

/**
 * Sends a system email. Retries for a day while the relay defers it.
 *
 * @returns the final status, for the Temporal UI.
 */
export async function sendNotification({ notificationId }: SendNotificationInput): Promise<string> {
  setCurrentDetails('See Pending Activities for attempts and the relay’s last reply.');
  try {
    return await attemptNotification({ notificationId });
  } catch (failure) {
    const error = findCancellation(failure);
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => stopNotification({ notificationId }));
    else if (error instanceof ActivityFailure) {
      const type = error.cause instanceof ApplicationFailure ? error.cause.type : 'Error';
      return stopNotification({ notificationId, reason: `Sending failed repeatedly (${type}).` });
    }
    throw error;
  }
}
