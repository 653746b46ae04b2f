import {
  createFairShare,
  type FairShare,
  organizationHolder,
  type Release,
  thirdOf,
} from '../../platform/concurrency/fair-share.ts';

/**
 * The attempts that one worker makes at the same time, deliveries and probes. An attempt lasts up to 15 s, also at a receiver
 * that answers 200 in the end, so that a reserve is left to organizations within their share.
 */
export function createAttemptShares(capacity: number): FairShare {
  return createFairShare({ name: 'webhook attempts', capacity, reserve: thirdOf(capacity) });
}

/**
 * Activities of a worker: besides the attempts those that only find out that no share is left, which takes a transaction.
 */
export const attemptActivities = (capacity: number): number => 2 * capacity + thirdOf(capacity);

/** The share of one attempt, whose organization is known only once its delivery has been read. */
export interface AttemptShare {
  /** @returns false if the organization has no share left. Once claimed, it stays so until `release`. */
  claim(organizationId: string): boolean;
  release(): void;
}

export function createAttemptShare(shares: FairShare): AttemptShare {
  let release: Release | null = null;
  return {
    claim(organizationId) {
      release ??= shares.tryAcquire({ holders: [organizationHolder(organizationId)] });
      return release !== null;
    },
    release: () => release?.(),
  };
}
