/** Contract of the wait for delivery reports of one sent message. */
export const TRACK_DELIVERY = 'trackDelivery';
export const trackDeliveryWorkflowId = (messageId: string): string => `delivery/${messageId}`;

export interface TrackDeliveryInput {
  messageId: string;
  /** Recipients whose outcome is still open. */
  openRecipients: number;
}

/** Signal, sent after an outcome was folded into the database: how many recipients are still open. */
export const DELIVERY_OUTCOME_RECORDED = 'outcomeRecorded';
export interface DeliveryOutcome {
  openRecipients: number;
}

/** After this long without a final report `sent` stays the last word. */
export const TRACKING_WINDOW_MS = 5 * 24 * 3_600_000;
