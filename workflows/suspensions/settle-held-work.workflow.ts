import { proxyActivities } from '@temporalio/workflow';
import type { HeldWorkActivities } from '../../activities/held-work.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { createStageReporter } from '../stage.ts';
import type { SettleHeldWorkInput, SettleHeldWorkStage } from './settle-held-work.contract.ts';

const { rejectHeldWork, releaseHeldWork } = proxyActivities<HeldWorkActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});
const { recordSuspensionSettled } = proxyActivities<HeldWorkActivities>(DATABASE_STEP);

/**
 * Settles the work that an organization's suspensions and limits hold: rejects what a suspension for abuse forbids, and
 * releases what nothing holds any longer. Every batch reads the current state, so that a run can be retried at any point
 * and runs of the same organization do not disturb each other.
 *
 * @returns a one-line result for the Temporal UI.
 */
export async function settleHeldWork({ organizationId, suspension }: SettleHeldWorkInput): Promise<string> {
  const stage = createStageReporter<SettleHeldWorkStage>('rejecting');
  const rejected = suspension ? await rejectHeldWork({ organizationId }) : 'nothing';
  stage.report('releasing', `Rejected: ${rejected}. Releasing what is no longer held.`);
  const released = await releaseHeldWork({ organizationId });
  if (suspension) await recordSuspensionSettled(suspension);
  return `rejected: ${rejected}; released: ${released}`;
}
