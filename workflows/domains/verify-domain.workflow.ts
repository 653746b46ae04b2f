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
import { createStageReporter } from '../stage.ts';
import { CHECK_NOW, type VerifyDomainInput } from './verify-domain.contract.ts';

const { checkDomainRecords } = proxyActivities<DomainActivities>({
  // A dozen names, each asked a few times at most; the rest is for the database.
  startToCloseTimeout: '2 minutes',
  // A cancellation reaches an activity that waits for its next look at once, and lets one in flight end.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  // Of a look that broke; one that saw too little names the time of the next itself.
  retry: { initialInterval: '5 seconds', maximumInterval: '5 minutes' },
});
const { stopVerification } = proxyActivities<DomainActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

export const checkNow = defineSignal(CHECK_NOW);

/**
 * Looks at a domain's DNS records until they are as they should be, or for 72 hours. The looks are retries of one
 * activity, so the history is as short after a hundred as after one; Pending Activities shows what is missing and when
 * the next look is due. Also waits for the record of a rotated DKIM key.
 *
 * @returns what became of it, for the Temporal UI.
 */
export async function verifyDomain({ domainId, episode }: VerifyDomainInput): Promise<string> {
  let asked = false;
  let looks = new CancellationScope();
  setHandler(
    checkNow,
    () => {
      asked = true;
      looks.cancel();
    },
    { description: 'Look now; a look under way ends first.' },
  );
  const board = createStageReporter<string>('pending');
  setCurrentDetails(
    'Signal: checkNow. What is missing, and the time of the next look, is under Pending Activities.',
  );
  let lookNow = false;
  try {
    for (;;) {
      looks = new CancellationScope();
      asked = false;
      try {
        const outcome = await looks.run(() => checkDomainRecords({ domainId, episode, lookNow }));
        board.report(outcome, `Ended: ${outcome}.`);
        return outcome;
      } catch (error) {
        if (!asked) throw error;
        lookNow = true;
      }
    }
  } catch (error) {
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => stopVerification({ domainId, episode }));
    throw error;
  }
}
