/** Contract of the wait of one scheduled draft. Every new plan of a draft is a run of its own. */
export const SEND_SCHEDULED_DRAFT = 'sendScheduledDraft';
export const sendScheduledDraftWorkflowId = (draftId: string, plan: number): string =>
  `scheduled/${draftId}/${plan}`;

export interface SendScheduledDraftInput {
  draftId: string;
  plan: number;
  /** ISO 8601 UTC. */
  sendAt: string;
  /** Version of the draft that has this time. */
  version: number;
}

/**
 * Signal of the service: the draft's row has another time. Arguments: ISO 8601 UTC, and the draft's version, because
 * signals may overtake one another. One without a version changes nothing: the row has the last word.
 */
export const RESCHEDULE_DRAFT = 'reschedule';
/** Signal: the plan is off; the draft stays. */
export const UNSCHEDULE_DRAFT = 'unschedule';
