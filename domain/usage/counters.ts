/** The usage counters (specification, "Usage and retention"). */
export const USAGE_COUNTERS = [
  'messages_sent',
  'messages_received',
  'storage_bytes',
  'api_calls',
  'webhook_deliveries',
] as const;
export type UsageCounter = (typeof USAGE_COUNTERS)[number];

/** Everything that has a limit: the counters, and the number of inboxes and domains. */
export const LIMITED_RESOURCES = [...USAGE_COUNTERS, 'inboxes', 'domains'] as const;
export type LimitedResource = (typeof LIMITED_RESOURCES)[number];

/** A gauge: the current total. The other counters restart each month. */
export const STORAGE_COUNTER = 'storage_bytes' satisfies UsageCounter;
