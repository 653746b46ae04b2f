/** Contract of a mail the service itself writes to a person. */
export const SEND_NOTIFICATION = 'sendNotification';
export const sendNotificationWorkflowId = (notificationId: string): string =>
  `notification/${notificationId}`;

export interface SendNotificationInput {
  notificationId: string;
}

/** Pause after attempt 1, 2, …; after the last one the mail has failed, a day after it was written. */
export const NOTIFICATION_PAUSES_MS = [
  60_000, 300_000, 900_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 28_800_000,
] as const;
