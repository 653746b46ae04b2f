import {
  ActivityCancellationType,
  CancellationScope,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { DomainActivities } from '../../activities/domains.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { findCancellation } from '../find-cancellation.ts';
import { createStageReporter } from '../stage.ts';
import { CHECK_NOW, type VerifyDomainInput } from './verify-domain.contract.ts';

const { checkDomainRecords } = proxyActivities<DomainActivities>({
  // Covers about a dozen names with a few DNS queries each, and the database.
  startToCloseTimeout: '2 minutes',
  // Cancellation ends an activity's backoff immediately but lets a check in progress finish.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  // For unexpected errors. A check that finds records missing sets its own retry delay.
  retry: { initialInterval: '5 seconds', maximumInterval: '5 minutes' },
});
const { stopVerification } = proxyActivities<DomainActivities>(DATABASE_STEP);

export const checkNow = defineSignal(CHECK_NOW);

/**
 * Checks a domain's DNS records until they are valid, for up to 72 hours. The checks are retries of one activity, so the
 * history stays short regardless of their number; Pending Activities shows what is missing and when the next check is due.
 * Also waits for the record of a rotated DKIM key.
 *
 * @returns the final status, for the Temporal UI.
 */
export async function verifyDomain({ domainId, generation }: VerifyDomainInput): Promise<string> {
  let checkRequested = false;
  let checks = new CancellationScope();
  setHandler(
    checkNow,
    () => {
      checkRequested = true;
      checks.cancel();
    },
    { description: 'Check now. A check in progress finishes first.' },
  );
  const stage = createStageReporter<string>('pending');
  setCurrentDetails(
    'Signal: checkNow. Pending Activities shows which records are missing and when the next check is due.',
  );
  let checkImmediately = false;
  try {
    for (;;) {
      checks = new CancellationScope();
      checkRequested = false;
      try {
        const outcome = await checks.run(() =>
          checkDomainRecords({ domainId, generation, checkImmediately }),
        );
        stage.report(outcome, `Ended: ${outcome}.`);
        return outcome;
      } catch (error) {
        if (!checkRequested) throw error;
        checkImmediately = true;
      }
    }
  } catch (failure) {
    const error = findCancellation(failure);
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => stopVerification({ domainId, generation }));
      stage.end('canceled');
    }
    throw error;
  }
}
