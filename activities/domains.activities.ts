import { ApplicationFailure } from '@temporalio/common';
import type { VerificationService } from '../domain/domains/verification.service.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type DomainActivities = ReturnType<typeof createDomainActivities>;

export function createDomainActivities({ verifications }: { verifications: VerificationService }) {
  return {
    /**
     * Checks the records once. If some are missing, it throws with the delay until the next check: Temporal's own retry is
     * the schedule, and the UI shows what is missing.
     *
     * @param checkImmediately checks even if no check is due. A new run waits first, because the records cannot be
     * published yet.
     */
    checkDomainRecords: ({
      domainId,
      generation,
      checkImmediately,
    }: {
      domainId: string;
      generation: number;
      checkImmediately: boolean;
    }): Promise<string> =>
      withApplicationFailures(async () => {
        const outcome = await verifications.check(domainId, generation, { now: checkImmediately });
        if (typeof outcome === 'string') return outcome;
        throw ApplicationFailure.create({
          type: 'RecordsMissing',
          message: outcome.detail,
          nextRetryDelay: Math.max(1, outcome.nextCheckInMs),
        });
      }),

    stopVerification: ({ domainId, generation }: { domainId: string; generation: number }): Promise<void> =>
      withApplicationFailures(() => verifications.stop(domainId, generation)),

    recheckVerifiedDomains: (): Promise<Record<string, number>> =>
      withApplicationFailures(() => verifications.recheckVerified(() => heartbeatBetweenSteps())),
  };
}
