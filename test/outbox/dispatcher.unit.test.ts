import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { createDispatcher } from '../../platform/outbox/dispatcher.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { eventually } from '../support/eventually.ts';

const CALL_MS = 20;
/** A timer may fire a millisecond early. */
const TIMER_TOLERANCE_MS = 2;
const SIGNAL: OutboxCommand = { signal: { workflowId: 'signal', signalName: 'retryNow', args: [] } };

const start = (workflowId: string, { priorityKey = 3, taskQueue = 'webhooks' } = {}): OutboxCommand => ({
  start: {
    workflowType: 'aWorkflow',
    workflowId,
    taskQueue,
    priority: { priorityKey, fairnessKey: workflowId },
    input: {},
    searchAttributes: {},
    summary: workflowId,
  },
});

/** Temporal answers each call after `server.callMs`, or when it is released. */
function arrange({ callMs, ...options }: { callMs?: number; pacedQueues?: string[] } = {}) {
  const server = { callMs };
  const calls: { id: string; startedAt: number; endedAt: number }[] = [];
  const held: (() => void)[] = [];
  let inProgress = 0;
  let mostInProgress = 0;
  const dispatch = createDispatcher({
    ...options,
    workflows: {
      async dispatch({ start: started, signal }) {
        const startedAt = performance.now();
        if (started) inProgress += 1;
        mostInProgress = Math.max(mostInProgress, inProgress);
        if (server.callMs !== undefined) await pause(server.callMs);
        else if (started) await new Promise<void>((release) => held.push(release));
        if (started) inProgress -= 1;
        const id = started?.workflowId ?? signal?.workflowId ?? '';
        calls.push({ id, startedAt, endedAt: performance.now() });
      },
    },
  });
  const burst = (organizationId: string, count: number, options?: Parameters<typeof start>[1]) =>
    Array.from({ length: count }, (_, index) =>
      dispatch({ organizationId, command: start(`${organizationId}/${index}`, options) }),
    );
  const releaseAll = async (commands: Promise<void>[]) => {
    const timer = setInterval(() => {
      for (const release of held.splice(0)) release();
    }, 1);
    await Promise.all(commands);
    clearInterval(timer);
  };
  return { server, dispatch, burst, calls, releaseAll, mostInProgress: () => mostInProgress };
}

interface Call {
  startedAt: number;
  endedAt: number;
}
/** Rests are multiples of what calls took, and the timer of a call may fire early, too. */
const fastestOf = (calls: Call[]) => Math.min(...calls.map(({ startedAt, endedAt }) => endedAt - startedAt));
const restsOf = (calls: Call[]) =>
  calls.slice(1).map(({ startedAt }, index) => startedAt - (calls[index]?.endedAt ?? 0));

describe('the calls of an organization', () => {
  test.each([
    ['starts of one queue', 3, 4, 1],
    ['sends', 1, 20, 4],
  ])(
    '%s are all of the capacity, and few while others use Temporal',
    async (_name, priorityKey, all, few) => {
      const alone = arrange();
      const commands = alone.burst('org_a', 30, { priorityKey });
      await eventually(() => expect(alone.mostInProgress()).toBe(all));
      await alone.releaseAll(commands);
      expect(alone.mostInProgress()).toBe(all);
      const shared = arrange();
      await shared.dispatch({ organizationId: 'org_b', command: SIGNAL });
      const others = shared.burst('org_a', 10, { priorityKey });
      await eventually(() => expect(shared.mostInProgress()).toBe(few));
      await shared.releaseAll(others);
      expect(shared.mostInProgress()).toBe(few);
      expect(shared.calls).toHaveLength(11);
    },
  );

  test.each([
    ['starts', 3, 2],
    ['sends', 1, 2],
    ['starts of a replay', 5, 6],
  ])(
    'that are %s rest in a burst, a replay also outside one, while others use Temporal',
    async (_name, priorityKey, rest) => {
      const { dispatch, burst, calls } = arrange({ callMs: CALL_MS });
      await dispatch({ organizationId: 'org_b', command: SIGNAL });
      const commands = burst('org_a', 20, { priorityKey });
      await pause(CALL_MS + 5);
      const requestedAt = performance.now();
      await dispatch({ organizationId: 'org_b', command: start('org_b/0', { priorityKey }) });
      await Promise.all(commands);
      const own = calls.filter(({ id }) => id.startsWith('org_a'));
      expect(own).toHaveLength(20);
      // What began before the burst was one does not count.
      const rests = restsOf(own).slice(6);
      const atLeast = rest * fastestOf(calls) - TIMER_TOLERANCE_MS;
      for (const each of rests.slice(0, 2)) expect(each).toBeGreaterThan(atLeast);
      // Another organization's start does not wait for the rest.
      const other = calls.find(({ id }) => id === 'org_b/0');
      const before = own.filter(
        ({ startedAt }) => startedAt > requestedAt && startedAt < (other?.startedAt ?? 0),
      );
      expect(before).toEqual([]);
      // The burst is over, but a replay still rests.
      await pause(1_000);
      for (let index = 20; index < 22; index += 1)
        await dispatch({ organizationId: 'org_a', command: start(`org_a/${index}`, { priorityKey }) });
      const [last = 0] = restsOf(calls.slice(-2));
      if (priorityKey === 5) expect(last).toBeGreaterThan(rest * fastestOf(calls) - TIMER_TOLERANCE_MS);
      else expect(last).toBeLessThan(CALL_MS);
    },
  );

  test('rest in a burst whose commands do not wait for each other', async () => {
    const { dispatch, calls } = arrange({ callMs: CALL_MS });
    await dispatch({ organizationId: 'org_b', command: SIGNAL });
    for (let index = 0; index < 10; index += 1)
      await dispatch({ organizationId: 'org_a', command: start(`org_a/${index}`, { priorityKey: 1 }) });
    const rests = restsOf(calls.filter(({ id }) => id.startsWith('org_a')));
    expect(Math.min(...rests.slice(0, 3))).toBeLessThan(CALL_MS);
    for (const rest of rests.slice(5))
      expect(rest).toBeGreaterThan(2 * fastestOf(calls) - TIMER_TOLERANCE_MS);
  });

  test('rest longer while starts take longer than on an idle server', async () => {
    const SLOW_CALL_MS = 40;
    let rest = 0;
    // A busy machine may make the first, quick start as slow as the others.
    for (let tries = 0; tries < 5 && rest <= 4 * SLOW_CALL_MS; tries += 1) {
      const { server, dispatch, burst, calls } = arrange({ callMs: 1 });
      await dispatch({ organizationId: 'org_b', command: start('org_b/0') });
      server.callMs = SLOW_CALL_MS;
      await Promise.all(burst('org_a', 15));
      rest = restsOf(calls.filter(({ id }) => id.startsWith('org_a'))).at(3) ?? 0;
    }
    // Without the slowdown it would be twice the time of the call.
    expect(rest).toBeGreaterThan(4 * SLOW_CALL_MS);
  });

  test('of a paced queue are made one after the other, those of another organization beside them', async () => {
    const shared = arrange({ pacedQueues: ['inbound'] });
    const commands = ['org_a', 'org_b'].flatMap((id) => shared.burst(id, 5, { taskQueue: 'inbound' }));
    await eventually(() => expect(shared.mostInProgress()).toBe(2));
    await shared.releaseAll(commands);
    expect(shared.mostInProgress()).toBe(2);
  });

  test('do not rest while no other organization uses Temporal', async () => {
    const times: number[] = [];
    // A busy machine may delay the timers of one run.
    while (times.length < 5 && Math.min(...times) >= 40 * CALL_MS) {
      const { burst, calls } = arrange({ callMs: CALL_MS });
      const startedAt = performance.now();
      await Promise.all(burst('org_a', 40));
      times.push(performance.now() - startedAt);
      expect(calls).toHaveLength(40);
    }
    expect(Math.min(...times)).toBeLessThan(40 * CALL_MS);
  });

  test.each([
    { swept: 'alone', calls: 2, when: 'whose process may not see that others use Temporal' },
    { swept: 'beside_flood', calls: 8, when: 'longer beside a flood that another process dispatches' },
  ] as const)('rest in a sweep, $when', async ({ swept, calls: restedCalls }) => {
    const { dispatch, calls, mostInProgress } = arrange({ callMs: CALL_MS });
    const commands = Array.from({ length: 16 }, (_, index) =>
      dispatch({ organizationId: 'org_a', command: start(`org_a/${index}`), swept }),
    );
    await Promise.all(commands);
    expect(mostInProgress()).toBe(1);
    const atLeast = restedCalls * fastestOf(calls) - TIMER_TOLERANCE_MS;
    for (const rest of restsOf(calls).slice(0, 4)) expect(rest).toBeGreaterThan(atLeast);
  });

  test('go on after one that failed', async () => {
    let failures = 0;
    const dispatch = createDispatcher({
      workflows: {
        async dispatch({ start: started }) {
          if (!started?.workflowId.startsWith('bad')) return;
          failures += 1;
          throw new Error('Temporal is away');
        },
      },
    });
    const send = (organizationId: string, workflowId: string) =>
      dispatch({ organizationId, command: start(workflowId) });
    await send('org_b', 'first');
    const results = await Promise.allSettled(
      Array.from({ length: 15 }, (_, index) => send('org_a', index < 8 ? `bad/${index}` : `good/${index}`)),
    );
    expect(failures).toBe(8);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
  });
});
