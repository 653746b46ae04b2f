/** Contract of the wait of one scheduled draft. Every new plan of a draft is a run of its own. */
export const SEND_SCHEDULED_DRAFT = 'sendScheduledDraft';
export const sendScheduledDraftWorkflowId = (draftId: string, plan: number): string =>
  `scheduled/${draftId}/${plan}`;

export interface SendScheduledDraftInput {
  draftId: string;
  plan: number;
  /** ISO 8601 UTC. */
  sendAt: string;
}

/** Signal: another time, ISO 8601 UTC. */
export const RESCHEDULE_DRAFT = 'reschedule';
/** Signal: the plan is off; the draft stays. */
export const UNSCHEDULE_DRAFT = 'unschedule';
