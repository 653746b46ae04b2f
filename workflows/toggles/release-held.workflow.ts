import { proxyActivities } from '@temporalio/workflow';
import type { ToggleActivities } from '../../activities/toggles.activities.ts';
import type { ReleaseHeldInput } from './release-held.contract.ts';

const { releaseHeld: releaseAll } = proxyActivities<ToggleActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '10 seconds', maximumInterval: '5 minutes' },
});

/**
 * Starts, in batches and oldest first, what was held while staff had switched it off. Ends when nothing is held, or when it
 * is switched off again. The reconciler releases what a terminated run leaves.
 *
 * @returns the count, for the Temporal UI.
 */
export async function releaseHeld({ toggle }: ReleaseHeldInput): Promise<string> {
  return `released ${await releaseAll({ toggle })}`;
}
