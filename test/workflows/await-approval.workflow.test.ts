import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import type { ApprovalActivities } from '../../activities/approvals.activities.ts';
import type { SettledApproval } from '../../domain/drafts/approval-run.service.ts';
import {
  APPROVAL_VOIDED,
  AWAIT_APPROVAL,
  DRAFT_APPROVED,
  DRAFT_REJECTED,
} from '../../workflows/drafts/await-approval.contract.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const DAY_MS = 86_400_000;
const environment = useWorkflowEnvironment();

/** A draft whose row waits until `expiresAt`, or until `isDecided`. */
function waitingDraft(waitMs: number) {
  const calls: string[] = [];
  let settledAt = 0;
  let isDecided = false;
  const state = {
    calls,
    settledAt: () => settledAt,
    decide: () => {
      isDecided = true;
    },
  };
  const begin = async (taskQueue: string) => {
    const expiresAt = (await environment.temporal.currentTimeMs()) + waitMs;
    const activities: ApprovalActivities = {
      async announceApproval() {
        calls.push('announce');
      },
      async settleApproval(): Promise<SettledApproval> {
        calls.push('settle');
        settledAt = await environment.temporal.currentTimeMs();
        if (isDecided) return 'decided';
        return settledAt >= expiresAt ? 'expired' : { waitUntil: new Date(expiresAt).toISOString() };
      },
      async cancelApproval() {
        calls.push('cancel');
      },
    };
    const start = () =>
      environment.temporal.client.workflow.start(AWAIT_APPROVAL, {
        taskQueue,
        workflowId: `approval/${randomUUID()}/1`,
        args: [{ draftId: 'drf_1', generation: 1, expiresAt: new Date(expiresAt).toISOString() }],
      });
    return { activities, start, expiresAt };
  };
  return { ...state, begin };
}

describe('awaitApproval', () => {
  test('announces the draft and rejects it when its time is over, not before', async () => {
    const queue = randomUUID();
    const draft = waitingDraft(7 * DAY_MS);
    const { activities, start, expiresAt } = await draft.begin(queue);
    await environment.withWorker(queue, activities, async () => {
      await expect((await start()).result()).resolves.toBe('expired');
    });
    expect(draft.calls).toEqual(['announce', 'settle']);
    expect(draft.settledAt()).toBeGreaterThanOrEqual(expiresAt);
    expect(draft.settledAt()).toBeLessThan(expiresAt + DAY_MS);
  });

  test.each([DRAFT_APPROVED, DRAFT_REJECTED, APPROVAL_VOIDED])(
    'ends with the signal %s once the row says so',
    async (signal) => {
      const queue = randomUUID();
      const draft = waitingDraft(7 * DAY_MS);
      const { activities, start } = await draft.begin(queue);
      await environment.withWorker(queue, activities, async () => {
        const handle = await start();
        draft.decide();
        await handle.signal(signal);
        await expect(handle.result()).resolves.toBe('decided');
        expect((await handle.fetchHistory()).events?.length).toBeLessThanOrEqual(25);
      });
    },
  );

  test('decides nothing by a signal that an operator sends', async () => {
    const queue = randomUUID();
    const draft = waitingDraft(7 * DAY_MS);
    const { activities, start, expiresAt } = await draft.begin(queue);
    await environment.withWorker(queue, activities, async () => {
      const handle = await start();
      await handle.signal(DRAFT_APPROVED);
      await expect(handle.result()).resolves.toBe('expired');
    });
    expect(draft.settledAt()).toBeGreaterThanOrEqual(expiresAt);
  });

  test('records that an operator canceled it', async () => {
    const queue = randomUUID();
    const draft = waitingDraft(7 * DAY_MS);
    const { activities, start } = await draft.begin(queue);
    // No worker runs yet, so the cancellation comes before the first timer fires.
    const handle = await start();
    await handle.cancel();
    await environment.withWorker(queue, activities, async () => {
      await expect(handle.result()).rejects.toThrow(WorkflowFailedError);
    });
    expect(draft.calls.at(-1)).toBe('cancel');
  });
});
