import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { DomainActivities } from '../../activities/domains.activities.ts';
import {
  CHECK_NOW,
  nextCheckDelayMs,
  VERIFICATION_WINDOW_MS,
  VERIFY_DOMAIN,
} from '../../workflows/domains/verify-domain.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const environment = useWorkflowEnvironment();

/** A zone whose records are found by check number `verifiedAt`. Checks follow the real schedule. */
function zone({ verifiedAt = Number.POSITIVE_INFINITY }: { verifiedAt?: number } = {}) {
  const checks: number[] = [];
  const stopped: string[] = [];
  let startedAt: number | undefined;
  const activities: Pick<DomainActivities, 'checkDomainRecords' | 'stopVerification'> = {
    async checkDomainRecords({ checkImmediately }) {
      const now = await environment.temporal.currentTimeMs();
      startedAt ??= now;
      const elapsedMs = now - startedAt;
      if (elapsedMs > 0 || checkImmediately) checks.push(elapsedMs);
      if (checks.length >= verifiedAt) return 'verified';
      if (elapsedMs >= VERIFICATION_WINDOW_MS) return 'failed';
      throw ApplicationFailure.create({
        type: 'RecordsMissing',
        message: 'Required records missing: spf.',
        nextRetryDelay: nextCheckDelayMs(elapsedMs),
      });
    },
    async stopVerification({ domainId }) {
      stopped.push(domainId);
    },
  };
  return { activities, checks, stopped };
}

const start = (taskQueue: string) =>
  environment.temporal.client.workflow.start(VERIFY_DOMAIN, {
    taskQueue,
    workflowId: `domain/${randomUUID()}/1`,
    args: [{ domainId: 'dom_1', generation: 1 }],
  });

describe('verifyDomain', () => {
  test('checks on the full schedule, fails after 72 hours, and has a short history', async () => {
    const queue = randomUUID();
    const { activities, checks } = zone();
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('failed');
      const delays = checks.map((at, index) => Math.round((at - (checks[index - 1] ?? 0)) / MINUTE_MS));
      expect(delays.slice(0, 10)).toEqual(Array(10).fill(1));
      expect(delays.slice(10, 22)).toEqual(Array(12).fill(5));
      expect(delays.slice(22, 46)).toEqual(Array(24).fill(30));
      expect(delays.slice(46, -1)).toEqual(Array(29).fill(120));
      expect(Math.round((checks.at(-1) ?? 0) / HOUR_MS)).toBe(72);
      const { events } = await handle.fetchHistory();
      expect(events?.length).toBeLessThanOrEqual(13);
      const { typedSearchAttributes } = await handle.describe();
      expect(JSON.stringify(typedSearchAttributes)).toContain('failed');
    });
  }, 60_000);

  test('ends as soon as the records are found', async () => {
    const queue = randomUUID();
    const { activities, checks } = zone({ verifiedAt: 12 });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('verified');
      expect(checks).toHaveLength(12);
    });
  });

  test('checkNow checks immediately', async () => {
    const queue = randomUUID();
    const { activities, checks } = zone({ verifiedAt: 1 });
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => {
        const { raw } = await handle.describe();
        expect(raw.pendingActivities?.[0]?.lastFailure?.message).toContain('missing');
      });
      await handle.signal(CHECK_NOW);
      await expect(handle.result()).resolves.toBe('verified');
      expect(checks[0]).toBeLessThan(MINUTE_MS);
    });
  });

  test('stops the verification of the domain when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    const { activities, stopped } = zone();
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(async () => {
        const { raw } = await handle.describe();
        expect(raw.pendingActivities).toHaveLength(1);
      });
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
    expect(stopped).toEqual(['dom_1']);
  });
});

test('an extra check does not shift the schedule', () => {
  expect(nextCheckDelayMs(0)).toBe(MINUTE_MS);
  expect(nextCheckDelayMs(90_000)).toBe(30_000);
  expect(nextCheckDelayMs(12 * MINUTE_MS)).toBe(3 * MINUTE_MS);
  expect(nextCheckDelayMs(72 * HOUR_MS - 10 * MINUTE_MS)).toBe(10 * MINUTE_MS);
  expect(nextCheckDelayMs(100 * HOUR_MS)).toBeLessThanOrEqual(2 * HOUR_MS);
});
