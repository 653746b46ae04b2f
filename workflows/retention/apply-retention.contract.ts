/** Contract of one day's deletion of an organization's old mail, with the warnings that go before it. */
export const APPLY_RETENTION = 'applyRetention';

/** @param episode the day (`2026-12-01`), or the change of the policy that is to be announced (`change-3`). */
export const applyRetentionWorkflowId = (organizationId: string, episode: string): string =>
  `retention/${organizationId}/${episode}`;

export interface ApplyRetentionInput {
  organizationId: string;
}

/** What a new or shorter policy deletes first goes so long after it was set. */
export const NOTICE_MS = 7 * 24 * 3_600_000;
/** Owners are warned once more so long before the first deletion, and before a postponed one. */
export const FINAL_NOTICE_MS = 24 * 3_600_000;

/** Signal: nothing more is deleted for so many days. The run ends after the batch it is at. */
export const POSTPONE_RETENTION = 'postpone';
export interface Postponement {
  days: number;
}
export const MAX_POSTPONE_DAYS = 90;

/** A stretch of deletion; after it the run rests for a moment, so that others have their turn. */
export const DELETION_STRETCH_MS = 5 * 60_000;
export const DELETION_REST_MS = 30_000;
/** A run that is not done after so many, which is nearly a day, leaves the rest to the next day's. */
export const STRETCHES_A_RUN = 250;
