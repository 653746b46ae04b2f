/** Contract of the wait for delivery reports of one sent message. */
export const TRACK_DELIVERY = 'trackDelivery';
export const trackDeliveryWorkflowId = (messageId: string): string => `delivery/${messageId}`;

export interface TrackDeliveryInput {
  messageId: string;
  /** Number of recipients without a final outcome. */
  openRecipients: number;
}

/** Signal: an outcome was recorded; carries the number of recipients that are still open. */
export const DELIVERY_OUTCOME_RECORDED = 'outcomeRecorded';
export interface DeliveryOutcomeSignal {
  openRecipients: number;
}

/** Tracking ends after this time; recipients without a report then stay `sent`. */
export const TRACKING_WINDOW_MS = 5 * 24 * 3_600_000;
