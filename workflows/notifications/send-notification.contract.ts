/** Contract of sending a system email to a user. */
export const SEND_NOTIFICATION = 'sendNotification';
export const sendNotificationWorkflowId = (notificationId: string, generation = 1): string =>
  `notification/${notificationId}${generation === 1 ? '' : `/${generation}`}`;

export interface SendNotificationInput {
  notificationId: string;
}

/** Delay after attempt 1, 2, …; the attempt after the last delay, about a day after the first, is final. */
export const NOTIFICATION_RETRY_DELAYS_MS = [
  60_000, 300_000, 900_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 28_800_000,
] as const;
