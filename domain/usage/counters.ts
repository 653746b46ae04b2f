/** What is counted (specification, "Usage and retention"). */
export const USAGE_COUNTERS = [
  'messages_sent',
  'messages_received',
  'storage_bytes',
  'api_calls',
  'webhook_deliveries',
] as const;
export type UsageCounter = (typeof USAGE_COUNTERS)[number];

/** What has a limit of its own: the counters, and how many there may be of these. */
export const LIMITED = [...USAGE_COUNTERS, 'inboxes', 'domains'] as const;
export type Limited = (typeof LIMITED)[number];

/** How much there is, whatever the month. The others begin anew with each. */
export const LEVEL_COUNTER = 'storage_bytes' satisfies UsageCounter;
