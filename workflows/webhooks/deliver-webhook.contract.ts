/** Contract of one event on its way to one endpoint. */
export const DELIVER_WEBHOOK = 'deliverWebhook';
/** @param episode rises when a settled delivery is started anew (released, retried by hand). */
export const deliverWebhookWorkflowId = (deliveryId: string, episode: number): string =>
  episode === 1 ? `webhook/${deliveryId}` : `webhook/${deliveryId}/${episode}`;

export interface DeliverWebhookInput {
  deliveryId: string;
  /** A run of an earlier episode that wakes late leaves the delivery alone. Empty in runs of before it was named. */
  episode?: number;
}

/** Signal: attempt now; an attempt in flight is left to end first. */
export const RETRY_DELIVERY_NOW = 'retryNow';
/** Signal: give the delivery up. */
export const CANCEL_DELIVERY = 'cancel';

/** Pause before attempt 1, 2, … 8. */
export const WEBHOOK_SCHEDULE_MS = [
  0, 5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000,
] as const;
/** Share of a pause that chance adds or takes, so that receivers do not get waves. */
export const WEBHOOK_JITTER = 0.1;
/** Longest `Retry-After` that is honoured. */
export const WEBHOOK_MAX_RETRY_AFTER_MS = 3_600_000;
