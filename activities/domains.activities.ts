import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { VerificationService } from '../domain/domains/verification.service.ts';
import { asFailure } from './failures.ts';

export type DomainActivities = ReturnType<typeof createDomainActivities>;

export function createDomainActivities({ verifications }: { verifications: VerificationService }) {
  return {
    /**
     * One look. Where it saw too little it is thrown with the time of the next, so that Temporal's own retry is the
     * schedule and the UI shows what is missing.
     *
     * @param lookNow on the first attempt; a run that begins waits for its first pause, since nothing can be published yet.
     */
    lookAtDomain: ({
      domainId,
      episode,
      lookNow,
    }: {
      domainId: string;
      episode: number;
      lookNow: boolean;
    }): Promise<string> =>
      asFailure(async () => {
        const outcome = await verifications.look(domainId, episode, { now: lookNow });
        if (typeof outcome === 'string') return outcome;
        throw ApplicationFailure.create({
          type: 'RecordsMissing',
          message: outcome.detail,
          nextRetryDelay: Math.max(1, outcome.againInMs),
        });
      }),

    stopVerification: ({ domainId, episode }: { domainId: string; episode: number }): Promise<void> =>
      asFailure(() => verifications.stop(domainId, episode)),

    recheckVerifiedDomains: (): Promise<Record<string, number>> =>
      asFailure(() => verifications.recheckVerified(() => Context.current().heartbeat())),
  };
}
