/** Contract of deleting an account or an organization for good, 30 days after its deletion. */
export const PURGE_ACCOUNT = 'purgeAccount';
export const PURGE_ORGANIZATION = 'purgeOrganization';

export interface PurgeRun {
  deletionId: string;
  /** Id of the user or organization. */
  subjectId: string;
  /** Incremented each time an operator resumes a stopped purge; part of the id from 2 on. */
  generation: number;
}

const withGeneration = (id: string, generation: number): string =>
  generation > 1 ? `${id}/${generation}` : id;

export const purgeAccountWorkflowId = ({ subjectId, deletionId, generation }: PurgeRun): string =>
  withGeneration(`purge/${subjectId}/${deletionId}`, generation);
export const purgeOrganizationWorkflowId = ({ subjectId, deletionId, generation }: PurgeRun): string =>
  withGeneration(`purge-organization/${subjectId}/${deletionId}`, generation);

export interface PurgeInput {
  deletionId: string;
  /** When the purge begins; ISO 8601 UTC. */
  dueAt: string;
  /** Whether a checkout may be open, which must not be paid for a closed organization. Unset in runs of older versions. */
  expiresCheckout?: boolean;
}

/** How long to try: an open checkout expires by itself within a day. */
export const EXPIRE_CHECKOUT_TIMEOUT_MS = 86_400_000;

/** How long a deleted account or organization can be recovered. */
export const RECOVERY_DAYS = 30;
/** Reminders are sent this many days before the purge. */
export const REMINDER_DAYS = [7, 1] as const;

/** Signal: the subject was recovered. From an operator, while it waits: stops the purge. */
export const CANCEL_PURGE = 'cancel';

/** Time limit of one deletion activity, and the pause after it. */
export const PURGE_SLICE_MS = 5 * 60_000;
export const PURGE_PAUSE_MS = 10_000;
/** Then the run continues as a new one, so that its history stays small. */
export const MAX_SLICES_PER_RUN = 250;
