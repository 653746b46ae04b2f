/** Contract of the run that reads a subscription back from Stripe after its events. */
export const SYNC_SUBSCRIPTION = 'syncSubscription';
/** One run at a time for each subscription. */
export const syncSubscriptionWorkflowId = (subscriptionId: string): string =>
  `billing-sync/${subscriptionId}`;

export interface SyncSubscriptionInput {
  subscriptionId: string;
}

/** Signal: read back once more, because another event has arrived. */
export const SUBSCRIPTION_CHANGED = 'subscriptionChanged';

/** The schedule that reads open subscriptions back, for events that were lost. */
export const RECONCILE_BILLING = 'reconcileBilling';
export const RECONCILE_BILLING_SCHEDULE_ID = 'reconcile-billing';
export const RECONCILE_BILLING_INTERVAL_MS = 3_600_000;
