import {
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { ApprovalActivities } from '../../activities/approvals.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import {
  APPROVAL_VOIDED,
  type AwaitApprovalInput,
  DRAFT_APPROVED,
  DRAFT_REJECTED,
} from './await-approval.contract.ts';

const { announceApproval, settleApproval, cancelApproval } =
  proxyActivities<ApprovalActivities>(DATABASE_STEP);

const SIGNALS = [DRAFT_APPROVED, DRAFT_REJECTED, APPROVAL_VOIDED] as const;

/**
 * Informs those who may approve a draft that it waits, and rejects it when no one has decided in time. The draft's row
 * decides: a signal only wakes the run.
 *
 * @returns the result, for the Temporal UI.
 */
export async function awaitApproval({ draftId, generation, expiresAt }: AwaitApprovalInput): Promise<string> {
  let signaled = false;
  for (const name of SIGNALS)
    setHandler(
      defineSignal(name),
      () => {
        signaled = true;
      },
      { description: 'Sent by the service after the change. Does not decide; use the API or the page.' },
    );
  setCurrentDetails(`Waiting for an approval until ${expiresAt}.`);
  try {
    await announceApproval({ draftId, generation });
    for (let until = expiresAt; ; ) {
      await condition(() => signaled, Math.max(1, Date.parse(until) - Date.now()));
      signaled = false;
      const result = await settleApproval({ draftId, generation });
      if (typeof result === 'string') return result;
      until = result.waitUntil;
    }
  } catch (error) {
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => cancelApproval({ draftId, generation }));
    throw error;
  }
}
