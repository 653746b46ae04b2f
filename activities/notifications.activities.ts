import { ApplicationFailure } from '@temporalio/common';
import type { NotificationSendingService } from '../domain/notifications/notification-sending.service.ts';
import { withApplicationFailures } from './failures.ts';

export type NotificationActivities = ReturnType<typeof createNotificationActivities>;

export function createNotificationActivities({
  notifications,
}: {
  notifications: NotificationSendingService;
}) {
  return {
    /**
     * Makes one attempt. If the relay defers it, throws with the delay until the next attempt: Temporal schedules the
     * retry.
     */
    attemptNotification: ({ notificationId }: { notificationId: string }): Promise<string> =>
      withApplicationFailures(async () => {
        const outcome = await notifications.send(notificationId);
        if (outcome.kind === 'settled') return outcome.status;
        throw ApplicationFailure.create({
          type: 'MailDeferred',
          message: outcome.detail.slice(0, 500),
          nextRetryDelay: outcome.delayMs,
        });
      }),

    stopNotification: ({
      notificationId,
      reason,
    }: {
      notificationId: string;
      reason?: string;
    }): Promise<string> => withApplicationFailures(() => notifications.stop(notificationId, reason)),
  };
}
