/** Task queues: one a kind of work, so that a flood of one leaves the others their workers. */
export const MAIL_QUEUE = 'mail';
export const WEBHOOKS_QUEUE = 'webhooks';
export const MAINTENANCE_QUEUE = 'maintenance';
export type TaskQueue = typeof MAIL_QUEUE | typeof WEBHOOKS_QUEUE | typeof MAINTENANCE_QUEUE;
