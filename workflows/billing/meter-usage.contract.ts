/** Contract of the schedule that reports use beyond soft limits to Stripe, for subscriptions with metered prices. */
export const METER_USAGE = 'meterUsage';
export const METER_USAGE_SCHEDULE_ID = 'meter-usage';
export const METER_USAGE_INTERVAL_MS = 15 * 60_000;

/** For the Temporal UI. */
export interface MeteredUsage {
  /** Hours with use beyond a limit that were written down. */
  hours: number;
  /** Reports that Stripe accepted, also of earlier runs. */
  reported: number;
  /** Reports that it refused for good. */
  refused: number;
}
