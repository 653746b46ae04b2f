/** Contract of the scheduled send of one draft. Every new schedule of a draft is its own run. */
export const SEND_SCHEDULED_DRAFT = 'sendScheduledDraft';
export const sendScheduledDraftWorkflowId = (draftId: string, scheduleVersion: number): string =>
  `scheduled/${draftId}/${scheduleVersion}`;

export interface SendScheduledDraftInput {
  draftId: string;
  scheduleVersion: number;
  /** ISO 8601 UTC. */
  sendAt: string;
  /** Version of the draft that has this `sendAt`. */
  version: number;
}

/**
 * Signal from the service: the draft's `send_at` has changed. Arguments: the new time (ISO 8601 UTC) and the draft's
 * version, because signals may arrive out of order. A signal without a version is ignored.
 */
export const RESCHEDULE_DRAFT = 'reschedule';
/** Signal: unschedule the draft and keep it. */
export const UNSCHEDULE_DRAFT = 'unschedule';
