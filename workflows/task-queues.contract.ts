/** One task queue per kind of work, so a backlog in one does not block the others. */
export const OUTBOUND_QUEUE = 'outbound';
export const INBOUND_QUEUE = 'inbound';
export const WEBHOOKS_QUEUE = 'webhooks';
export const MAINTENANCE_QUEUE = 'maintenance';
export const TASK_QUEUES = [OUTBOUND_QUEUE, INBOUND_QUEUE, WEBHOOKS_QUEUE, MAINTENANCE_QUEUE] as const;
export type TaskQueue = (typeof TASK_QUEUES)[number];

/**
 * Queues whose runs each process starts one after the other for each organization, with rests in a burst. It is enough for all
 * the mail that a process can accept; without it, a flood of mail delays sends (`npm run bench -- flood`).
 */
export const PACED_QUEUES = [INBOUND_QUEUE] as const;

/**
 * Order of tasks within a queue: a smaller number first. Within one priority, Temporal divides the queue fairly between
 * fairness keys. Temporal accepts 1 to 5; runs without a priority have 3.
 */
export const PRIORITY = {
  /** A send that someone waits for, or an email about the security of an account. */
  urgent: 1,
  /** A send whose time the client chose before. */
  scheduled: 2,
  default: 3,
  /** Other emails of the service itself. */
  notification: 4,
  /** A replay, its deliveries, and those that a usage limit held: live events go before the thousands of these. */
  bulk: 5,
} as const;
export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];
