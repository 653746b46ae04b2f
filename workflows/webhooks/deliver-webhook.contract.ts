/** Contract of the delivery of one event to one endpoint. */
export const DELIVER_WEBHOOK = 'deliverWebhook';
/** @param generation incremented when a delivery is restarted (released, retried or replayed). */
export const deliverWebhookWorkflowId = (deliveryId: string, generation: number): string =>
  generation === 1 ? `webhook/${deliveryId}` : `webhook/${deliveryId}/${generation}`;

export interface DeliverWebhookInput {
  deliveryId: string;
  /** A late run of an earlier generation does not change the delivery. */
  generation: number;
  /** The endpoints of an organization share its attempts. */
  endpointId: string;
  /** The first attempt is a local activity. Missing in runs of older versions. */
  attemptsLocally?: boolean;
}

/** Signal: attempt now. An attempt in progress finishes first. @param options {@link RetryNowOptions}, which may be missing. */
export const RETRY_DELIVERY_NOW = 'retryNow';

export interface RetryNowOptions {
  /**
   * The delivery's row says that an attempt is due: it takes its turn. Without it, a failing endpoint is probed with this
   * delivery, which is right for one that a person asked for, but not for thousands of a replay.
   */
  isDue?: boolean;
}
/** Signal: cancel the delivery. */
export const CANCEL_DELIVERY = 'cancel';

/** Delay before attempt 1, 2, … 8. */
export const WEBHOOK_SCHEDULE_MS = [
  0, 5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000,
] as const;
/** Fraction of the delay that is randomly added or subtracted, so that retries do not arrive in waves. */
export const WEBHOOK_JITTER = 0.1;
/** Longest `Retry-After` that is honored. */
export const WEBHOOK_MAX_RETRY_AFTER_MS = 3_600_000;
