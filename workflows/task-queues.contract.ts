/** One task queue per kind of work, so a backlog in one does not block the others. */
export const MAIL_QUEUE = 'mail';
export const WEBHOOKS_QUEUE = 'webhooks';
export const MAINTENANCE_QUEUE = 'maintenance';
export type TaskQueue = typeof MAIL_QUEUE | typeof WEBHOOKS_QUEUE | typeof MAINTENANCE_QUEUE;
