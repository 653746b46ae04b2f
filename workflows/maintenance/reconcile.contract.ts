/** Contract of the sweep that recovers work interrupted by a crash or an operator. Scheduled every minute. */
export const RECONCILE = 'reconcile';
export const RECONCILE_SCHEDULE_ID = 'reconcile';
export const RECONCILE_INTERVAL_MS = 60_000;
