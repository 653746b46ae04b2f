/** Contract of one request for the approval of a draft. A changed draft is requested again, with a run of its own. */
export const AWAIT_APPROVAL = 'awaitApproval';
export const awaitApprovalWorkflowId = (draftId: string, generation: number): string =>
  `approval/${draftId}/${generation}`;

export interface AwaitApprovalInput {
  draftId: string;
  generation: number;
  /** ISO 8601 UTC. */
  expiresAt: string;
}

/** Signals from the service, after the draft was approved, rejected, or changed or deleted. They decide nothing. */
export const DRAFT_APPROVED = 'approved';
export const DRAFT_REJECTED = 'rejected';
export const APPROVAL_VOIDED = 'voided';
