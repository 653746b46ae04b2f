/** Contract of the daily retention run of an organization: warnings, then deletion of expired messages. */
export const APPLY_RETENTION = 'applyRetention';

/** @param occasion the day (`2026-12-01`), or the policy change to announce (`change-3`). */
export const applyRetentionWorkflowId = (organizationId: string, occasion: string): string =>
  `retention/${organizationId}/${occasion}`;

export interface ApplyRetentionInput {
  organizationId: string;
}

/** Time between setting a new or shorter policy and its first deletion. */
export const NOTICE_MS = 7 * 24 * 3_600_000;
/** How long before a first or postponed deletion owners get the final warning. */
export const FINAL_NOTICE_MS = 24 * 3_600_000;

/** Signal: postpones deletion by a number of days. The run ends after its current batch. */
export const POSTPONE_RETENTION = 'postpone';
export interface Postponement {
  days: number;
}
export const MAX_POSTPONE_DAYS = 90;

/** Time limit of one deletion activity, and the pause after it, in which other runs can delete. */
export const DELETION_SLICE_MS = 5 * 60_000;
export const DELETION_PAUSE_MS = 30_000;
/** Nearly a day; the next daily run continues. */
export const MAX_SLICES_PER_RUN = 250;
