import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WebhookProbeActivities } from '../../activities/webhook-probes.activities.ts';
import { createWebhookProbeActivities } from '../../activities/webhook-probes.activities.ts';
import type { ProbeOutcome, ProbeService } from '../../domain/webhooks/probe.service.ts';
import {
  PROBE_ENDPOINT,
  PROBE_NOW,
  probeEndpointWorkflowId,
  probeIntervalMs,
} from '../../workflows/webhooks/probe-endpoint.contract.ts';
import { eventually } from '../support/eventually.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';

const environment = useWorkflowEnvironment();

const MINUTE_MS = 60_000;
const FIVE_DAYS_MS = 5 * 24 * 60 * MINUTE_MS;
const ended = (status: 'recovered' | 'released' | 'disabled' | 'failing'): ProbeOutcome => ({
  kind: 'ended',
  status,
});
const repeat = (delayMs: number): ProbeOutcome => ({ kind: 'repeat', delayMs, detail: 'HTTP 503' });

/** The real activities, so that delays are passed on as they are in a worker. */
function fakeProbes(
  attempt: (probe: number, sinceStartMs: number) => ProbeOutcome,
  release: (batch: number) => ProbeOutcome = () => ended('released'),
) {
  const probedAt: number[] = [];
  const requestedNow: boolean[] = [];
  let releases = 0;
  const probes: ProbeService = {
    async attempt({ now }) {
      probedAt.push(await environment.temporal.currentTimeMs());
      requestedNow.push(now);
      return attempt(probedAt.length, (probedAt.at(-1) ?? 0) - (probedAt[0] ?? 0));
    },
    async release() {
      releases += 1;
      return release(releases);
    },
  };
  const activities: WebhookProbeActivities = createWebhookProbeActivities({ probes });
  return { activities, probedAt, requestedNow, releases: () => releases };
}

async function start(taskQueue: string, signal?: string) {
  const endpointId = `whe_${randomUUID()}`;
  const options = {
    taskQueue,
    workflowId: probeEndpointWorkflowId(endpointId, 1),
    args: [{ endpointId, generation: 1 }],
  };
  const { workflow } = environment.temporal.client;
  return signal
    ? workflow.signalWithStart(PROBE_ENDPOINT, { ...options, signal, signalArgs: [] })
    : workflow.start(PROBE_ENDPOINT, options);
}

async function countEvents(workflowId: string): Promise<number> {
  const history = await environment.temporal.client.workflow.getHandle(workflowId).fetchHistory();
  return history.events?.length ?? 0;
}

describe('probeEndpoint', () => {
  test('probes for five days, every minute and then every five, with 11 events', async () => {
    const queue = randomUUID();
    const { activities, probedAt } = fakeProbes((_probe, sinceStartMs) =>
      sinceStartMs < FIVE_DAYS_MS ? repeat(probeIntervalMs(sinceStartMs)) : ended('disabled'),
    );
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('disabled');
      await expect(countEvents(handle.workflowId)).resolves.toBe(11);
    });
    // Ten in the first ten minutes, then 12 an hour. Each takes a little longer than its delay.
    expect(probedAt.length).toBeGreaterThan(1_400);
    expect(probedAt.length).toBeLessThan(1_450);
    const delays = probedAt.slice(1).map((at, index) => at - (probedAt[index] ?? 0));
    expect(Math.max(...delays.slice(0, 8))).toBeLessThan(2 * MINUTE_MS);
    expect(Math.min(...delays.slice(12))).toBeGreaterThanOrEqual(5 * MINUTE_MS);
  }, 120_000);

  test('releases the backlog after a successful probe, batch after batch, and reports the stage', async () => {
    const queue = randomUUID();
    const { activities, releases } = fakeProbes(
      (probe) => (probe < 3 ? repeat(MINUTE_MS) : ended('recovered')),
      (batch) => (batch < 40 ? repeat(1_000) : ended('released')),
    );
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('released');
      await expect(countEvents(handle.workflowId)).resolves.toBeLessThanOrEqual(20);
      const { typedSearchAttributes } = await handle.describe();
      expect(JSON.stringify(typedSearchAttributes)).toContain('releasing');
    });
    expect(releases()).toBe(40);
  });

  test('probes again if the endpoint fails while its backlog is released', async () => {
    const queue = randomUUID();
    const { activities, probedAt } = fakeProbes(
      () => ended('recovered'),
      (batch) => ended(batch === 1 ? 'failing' : 'released'),
    );
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await expect(handle.result()).resolves.toBe('released');
    });
    expect(probedAt).toHaveLength(2);
  });

  test('retryNow starts a probe during the wait', async () => {
    const queue = randomUUID();
    const { activities, probedAt, requestedNow } = fakeProbes((probe) =>
      probe === 1 ? repeat(FIVE_DAYS_MS) : ended('disabled'),
    );
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(probedAt).toHaveLength(1));
      await handle.signal(PROBE_NOW);
      await expect(handle.result()).resolves.toBe('disabled');
    });
    expect(requestedNow).toEqual([false, true]);
  });

  test('probes immediately when started with retryNow', async () => {
    const queue = randomUUID();
    const { activities, requestedNow } = fakeProbes(() => ended('disabled'));
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue, PROBE_NOW)).result()).resolves.toBe('disabled');
    });
    expect(requestedNow).toEqual([true]);
  });

  test('continues as new after many signals', async () => {
    const queue = randomUUID();
    const { activities, probedAt } = fakeProbes((probe) =>
      probe < 100 ? repeat(FIVE_DAYS_MS) : ended('disabled'),
    );
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      for (let probe = 1; probe < 100; probe += 1) {
        await eventually(() => expect(probedAt).toHaveLength(probe));
        await environment.temporal.client.workflow.getHandle(handle.workflowId).signal(PROBE_NOW);
      }
      await expect(handle.result()).resolves.toBe('disabled');
      await expect(countEvents(handle.workflowId)).resolves.toBeLessThan(520);
    });
    expect(probedAt).toHaveLength(100);
  }, 120_000);

  test('continues after an unexpected error of an activity', async () => {
    const queue = randomUUID();
    const { activities, probedAt } = fakeProbes((probe) => {
      if (probe === 1) throw new Error('the database is down');
      return ended('disabled');
    });
    await environment.withWorker(queue, activities, async () => {
      await expect((await start(queue)).result()).resolves.toBe('disabled');
    });
    expect(probedAt).toHaveLength(2);
  });

  test('ends when canceled in the Temporal UI', async () => {
    const queue = randomUUID();
    const { activities, probedAt } = fakeProbes(() => repeat(FIVE_DAYS_MS));
    await environment.withWorker(queue, activities, async () => {
      const handle = await start(queue);
      await eventually(() => expect(probedAt).toHaveLength(1));
      await handle.cancel();
      await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
    });
  });
});

describe('the activities', () => {
  test('show the result and the time of the next probe in Pending Activities', async () => {
    const { activities } = fakeProbes(() => repeat(300_000));
    const failure = await activities
      .attemptProbe({ endpointId: 'whe_1', generation: 1, now: false })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApplicationFailure);
    expect(failure).toMatchObject({ type: 'EndpointFailing', message: 'HTTP 503', nextRetryDelay: 300_000 });
  });
});
