import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAttemptShares, MAX_CONCURRENT_ATTEMPTS } from '../../domain/webhooks/attempt-slots.ts';
import { DeliveryAttemptEntity } from '../../domain/webhooks/delivery.entity.ts';
import { FAILING_AFTER_FAILURES } from '../../domain/webhooks/endpoint-health.ts';
import { createRetryPacing } from '../../domain/webhooks/retry-pacing.ts';
import { createSlotWaiters } from '../../domain/webhooks/slot-waiters.ts';
import { organizationHolder } from '../../platform/concurrency/fair-share.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const database = useWorkerDatabase();

/** A receiver that responds on demand and counts concurrent requests. */
function slowReceiver() {
  const waiting: ((result: EgressResult) => void)[] = [];
  let maxConcurrent = 0;
  return {
    post: () =>
      new Promise<EgressResult>((resolve) => {
        waiting.push(resolve);
        maxConcurrent = Math.max(maxConcurrent, waiting.length);
      }),
    waiting: () => waiting.length,
    maxConcurrent: () => maxConcurrent,
    respondToAll(status: number) {
      for (const resolve of waiting.splice(0)) resolve(httpAnswer(status));
    },
  };
}

describe('attempt slots', () => {
  test('limit an endpoint to 10 concurrent attempts across workers; a delivery without a slot makes no attempt', async () => {
    const { worker, deliveryIds, deliveries } = await arrangeDeliveries(database, 25);
    const receiver = slowReceiver();
    const workers = [worker(receiver.post), worker(receiver.post), worker(receiver.post)];
    let busy = 0;
    const outcomes = deliveryIds.map(async (id, index) => {
      const outcome = await workers[index % 3]?.attempt(id, false, 1);
      if (outcome?.kind === 'busy') busy += 1;
      return outcome;
    });
    await eventually(() => expect(receiver.waiting()).toBe(MAX_CONCURRENT_ATTEMPTS));
    await eventually(() => expect(busy).toBe(15));
    const waiting = (await deliveries()).filter(({ attempts }) => attempts === 0);
    expect(waiting).toHaveLength(15);
    expect(waiting.every(({ nextAttemptAt, createdAt }) => (nextAttemptAt ?? 0) > createdAt)).toBe(true);
    receiver.respondToAll(200);
    const kinds = (await Promise.all(outcomes)).map((outcome) => outcome?.kind);
    expect(kinds.filter((kind) => kind === 'settled')).toHaveLength(10);
    expect(kinds.filter((kind) => kind === 'busy')).toHaveLength(15);
    expect(receiver.maxConcurrent()).toBe(10);

    // The slots are free again: the remaining deliveries follow in two rounds.
    const left = (await deliveries()).filter(({ status }) => status === 'pending').map(({ id }) => id);
    const second = left.slice(0, 10).map((id) => workers[0]?.attempt(id, true, 1));
    await eventually(() => expect(receiver.waiting()).toBe(10));
    receiver.respondToAll(200);
    await Promise.all(second);
    expect((await deliveries()).filter(({ status }) => status === 'delivered')).toHaveLength(20);
  });

  test('of a crashed worker become free when the lease ends', async () => {
    const { worker, deliveryIds, endpointId } = await arrangeDeliveries(database, 12);
    const receiver = slowReceiver();
    const crashed = worker(receiver.post);
    void Promise.allSettled(deliveryIds.slice(0, 10).map((id) => crashed.attempt(id, false, 1)));
    await eventually(() => expect(receiver.waiting()).toBe(10));
    const healthy = worker(async () => httpAnswer(200));
    const [next = ''] = deliveryIds.slice(10);
    await expect(healthy.attempt(next, true, 1)).resolves.toMatchObject({ kind: 'busy' });
    await query(
      database,
      sql`update webhook_slots set leased_until = leased_until - interval '31 seconds' where endpoint_id = ${endpointId}`,
    );
    await expect(healthy.attempt(next, true, 1)).resolves.toMatchObject({ status: 'delivered' });
  });

  test('are one for each delivery: a second attempt of it waits, although others are free', async () => {
    const { worker, deliveryIds, endpointId } = await arrangeDeliveries(database, 2);
    const [id = '', other = ''] = deliveryIds;
    const receiver = slowReceiver();
    // A worker that has lost Temporal, which then starts the attempt on another one.
    const lost = worker(receiver.post).attempt(id, false, 1);
    await eventually(() => expect(receiver.waiting()).toBe(1));
    const next = worker(async () => httpAnswer(200));
    await expect(next.attempt(id, true, 1)).resolves.toMatchObject({ kind: 'busy', attempts: 1 });
    await expect(next.attempt(other, true, 1)).resolves.toMatchObject({ status: 'delivered' });
    receiver.respondToAll(500);
    await lost;
    await expect(next.attempt(id, true, 1)).resolves.toMatchObject({ status: 'delivered' });
    const [{ leased } = { leased: -1 }] = await query<{ leased: number }>(
      database,
      sql`select count(*)::int as leased from webhook_slots where endpoint_id = ${endpointId} and leased_until > now()`,
    );
    expect(leased).toBe(0);
  });

  test('are not released by a late worker once another has leased them', async () => {
    const { worker, deliveryIds, endpointId } = await arrangeDeliveries(database, 2, {
      failing_since: new Date(),
      consecutive_failures: FAILING_AFTER_FAILURES,
    });
    const [first = '', second = ''] = deliveryIds;
    const [late, current] = [slowReceiver(), slowReceiver()];
    const lateAttempt = worker(late.post).attempt(first, false, 1);
    await eventually(() => expect(late.waiting()).toBe(1));
    await query(
      database,
      sql`update webhook_slots set leased_until = 'epoch' where endpoint_id = ${endpointId}`,
    );
    const currentAttempt = worker(current.post).attempt(second, false, 1);
    await eventually(() => expect(current.waiting()).toBe(1));
    late.respondToAll(500);
    await lateAttempt;
    const [{ leased } = { leased: 0 }] = await query<{ leased: number }>(
      database,
      sql`select count(*)::int as leased from webhook_slots where endpoint_id = ${endpointId} and leased_until > now()`,
    );
    expect(leased).toBe(1);
    current.respondToAll(200);
    await currentAttempt;
  });

  test('limit a failing endpoint to one attempt until it responds', async () => {
    const { worker, deliveryIds, endpoint } = await arrangeDeliveries(database, 16);
    const failing = worker(async () => ({ kind: 'failed', error: 'ECONNREFUSED', durationMs: 1 }));
    for (const id of deliveryIds.slice(0, FAILING_AFTER_FAILURES)) await failing.attempt(id, false, 1);
    expect(await endpoint()).toMatchObject({ consecutiveFailures: 10, failingSince: expect.any(Date) });

    const receiver = slowReceiver();
    const probing = worker(receiver.post);
    const [probe = '', other = '', ...rest] = deliveryIds.slice(FAILING_AFTER_FAILURES);
    const attempt = probing.attempt(probe, false, 1);
    await eventually(() => expect(receiver.waiting()).toBe(1));
    await expect(probing.attempt(other, false, 1)).resolves.toMatchObject({
      kind: 'settled',
      status: 'held',
    });
    receiver.respondToAll(200);
    await expect(attempt).resolves.toMatchObject({ status: 'delivered' });
    expect(await endpoint()).toMatchObject({ consecutiveFailures: 0, failingSince: null });

    const all = rest.map((id) => probing.attempt(id, false, 1));
    await eventually(() => expect(receiver.waiting()).toBe(rest.length));
    receiver.respondToAll(200);
    await Promise.all(all);
  });
});

describe('a run', () => {
  test('of an earlier generation does not touch the delivery', async () => {
    const { worker, deliveryIds, deliveries } = await arrangeDeliveries(database, 1);
    const [id = ''] = deliveryIds;
    await query(database, sql`update webhook_deliveries set generation = 2 where id = ${id}`);
    const service = worker(async () => httpAnswer(200));
    await expect(service.attempt(id, true, 1)).resolves.toMatchObject({
      kind: 'settled',
      status: 'superseded',
    });
    await expect(service.cancel(id, 1)).resolves.toBe('superseded');
    expect((await deliveries())[0]).toMatchObject({ status: 'pending', attempts: 0 });
    await expect(service.attempt(id, true, 2)).resolves.toMatchObject({ status: 'delivered' });
  });

  test('without a generation continues', async () => {
    const { worker, deliveryIds } = await arrangeDeliveries(database, 1);
    const service = worker(async () => httpAnswer(200));
    await expect(service.attempt(deliveryIds[0] ?? '', false)).resolves.toMatchObject({
      status: 'delivered',
    });
  });
});

test('commits the attempt before it sends the request', async () => {
  const { worker, deliveryIds } = await arrangeDeliveries(database, 1);
  const [deliveryId = ''] = deliveryIds;
  const service = worker(async () => {
    const attempts = await database.db
      .selectFrom('webhook_delivery_attempts')
      .select(columnsOf(DeliveryAttemptEntity))
      .where('delivery_id', '=', deliveryId)
      .execute();
    expect(attempts).toMatchObject([{ number: 1, finishedAt: null }]);
    return httpAnswer(204);
  });
  await expect(service.attempt(deliveryId, false, 1)).resolves.toMatchObject({ status: 'delivered' });
});

test('a worker with a wrong encryption key uses up no attempt', async () => {
  const { worker, deliveryIds, deliveries } = await arrangeDeliveries(database, 1);
  const [deliveryId = ''] = deliveryIds;
  const other = createSecretBox(Buffer.alloc(32, 1).toString('base64'));
  const service = worker(async () => httpAnswer(200), { secretBox: other });
  await expect(service.attempt(deliveryId, false, 1)).rejects.toThrow();
  expect((await deliveries())[0]).toMatchObject({ status: 'pending', attempts: 0 });
  await expect(worker(async () => httpAnswer(200)).attempt(deliveryId, false, 1)).resolves.toMatchObject({
    status: 'delivered',
  });
});

describe('the attempts of a worker', () => {
  test('are shared: receivers that answer late leave slots to another organization, and no attempt is used up', async () => {
    const shares = createAttemptShares(6);
    const late = slowReceiver();
    const greedy = await arrangeDeliveries(database, 9);
    const other = await arrangeDeliveries(database, 3);
    const ofGreedy = greedy.worker(late.post, { shares });
    const inFlight = greedy.deliveryIds.slice(0, 6).map((id) => ofGreedy.attempt(id, false, 1));
    await eventually(() => expect(late.waiting()).toBe(6));
    for (const id of greedy.deliveryIds.slice(6))
      await expect(ofGreedy.attempt(id, false, 1)).resolves.toMatchObject({ kind: 'busy', attempts: 0 });
    expect((await greedy.deliveries()).slice(6)).toMatchObject(
      Array.from({ length: 3 }, () => ({ status: 'pending', attempts: 0 })),
    );

    const prompt = other.worker(async () => httpAnswer(200), { shares });
    for (const id of other.deliveryIds)
      await expect(prompt.attempt(id, false, 1)).resolves.toMatchObject({ status: 'delivered' });
    late.respondToAll(200);
    expect((await Promise.all(inFlight)).map(({ kind }) => kind)).toEqual(inFlight.map(() => 'settled'));
    expect(shares.usage()).toEqual({ used: 0, waiting: 0 });
  });

  test('come one after the other for a burst to prompt receivers, without a wait in Temporal', async () => {
    const shares = createAttemptShares(4);
    const { worker, deliveryIds } = await arrangeDeliveries(database, 20);
    const service = worker(async () => httpAnswer(200), { shares, slotWaitMs: 30_000 });
    const outcomes = await Promise.all(deliveryIds.map((id) => service.attempt(id, false, 1)));
    const settled = outcomes.filter(({ kind }) => kind === 'settled');
    // A busy machine may need longer for one of them than an attempt waits.
    expect(settled.length).toBeGreaterThan(8);
    expect(shares.usage()).toEqual({ used: 0, waiting: 0 });
  });

  test('include those that wait for a slot of their endpoint', async () => {
    const shares = createAttemptShares(12);
    const late = slowReceiver();
    const { worker, deliveryIds } = await arrangeDeliveries(database, 20);
    const service = worker(late.post, { shares, slotWaitMs: 30_000 });
    const outcomes = deliveryIds.map((id) => service.attempt(id, false, 1));
    await eventually(() => expect(late.waiting()).toBe(MAX_CONCURRENT_ATTEMPTS));
    await eventually(() => expect(shares.usage().used).toBe(12));
    const settled: string[] = [];
    for (const outcome of outcomes) void outcome.then(({ kind }) => settled.push(kind));
    await eventually(() => expect(settled).toEqual(Array.from({ length: 8 }, () => 'busy')));
    late.respondToAll(200);
    await eventually(() => expect(late.waiting()).toBe(2));
    late.respondToAll(200);
    await Promise.all(outcomes);
  });

  test('include probes', async () => {
    const shares = createAttemptShares(3);
    const { probe, endpointId, organization } = await arrangeDeliveries(database, 1, {
      failing_since: new Date(),
      consecutive_failures: FAILING_AFTER_FAILURES,
      holding_since: new Date(),
      probe_generation: 1,
    });
    await query(
      database,
      sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing'
      where endpoint_id = ${endpointId}`,
    );
    const hung = slowReceiver();
    const run = { endpointId, generation: 1, now: true };
    const holders = [organizationHolder(organization.organizationId)];
    const held = [1, 2, 3].map(() => shares.tryAcquire({ holders }));
    await expect(probe(hung.post, { shares }).attempt(run)).resolves.toMatchObject({ kind: 'repeat' });
    expect(hung.waiting()).toBe(0);
    for (const release of held) release?.();
    const probing = probe(hung.post, { shares }).attempt(run);
    await eventually(() => expect(hung.waiting()).toBe(1));
    expect(shares.usage().used).toBe(1);
    hung.respondToAll(200);
    await probing;
    expect(shares.usage().used).toBe(0);
  });
});

describe('retry pacing', () => {
  const pace = { minDelayMs: 1_000, intervalMs: 200, slots: 10 };

  test('spaces out the retries of each endpoint separately', () => {
    let now = 0;
    const pacing = createRetryPacing({ maxDelayMs: 60_000, now: () => now });
    expect([1, 2, 3].map(() => pacing.nextDelayMs('a', pace))).toEqual([1_000, 1_200, 1_400]);
    expect(pacing.nextDelayMs('b', pace)).toBe(1_000);
    now = 1_300;
    expect(pacing.nextDelayMs('a', pace)).toBe(1_000);
  });

  test('follows the duration of attempts: those in progress, then the last ones', () => {
    let now = 0;
    const pacing = createRetryPacing({ maxDelayMs: 60_000, now: () => now });
    const ends = Array.from({ length: 10 }, () => pacing.begin(['a', 'organization']));
    now = 10_000;
    // One of ten slots becomes free in a second.
    for (const key of ['a', 'organization'])
      expect([1, 2, 3].map(() => pacing.nextDelayMs(key, pace))).toEqual([1_000, 2_000, 3_000]);
    expect([1, 2].map(() => pacing.nextDelayMs('b', pace))).toEqual([1_000, 1_200]);
    for (const end of ends) end();
    now = 20_000;
    expect([1, 2].map(() => pacing.nextDelayMs('a', pace))).toEqual([1_000, 2_000]);
    for (let attempt = 0; attempt < 50; attempt += 1) pacing.begin(['a'])();
    now = 30_000;
    expect([1, 2].map(() => pacing.nextDelayMs('a', pace))).toEqual([1_000, 1_200]);
  });

  test('never exceeds the maximum delay', () => {
    const pacing = createRetryPacing({ maxDelayMs: 60_000, now: () => 0 });
    const delays = Array.from({ length: 10_000 }, () => pacing.nextDelayMs('a', pace));
    expect(Math.max(...delays)).toBeLessThanOrEqual(60_000);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(1_000);
  });
});

describe('waiting for a slot in the worker', () => {
  const waiterOptions = { maxWaiters: 1, recentReleaseMs: 500, now: () => 1_000 };

  test('serves each endpoint separately, first come, first served', async () => {
    const slotWaiters = createSlotWaiters(waiterOptions);
    const served: string[] = [];
    const waits = ['first', 'second'].map(async (name) => {
      await slotWaiters.wait('a', 10_000);
      served.push(name);
    });
    slotWaiters.slotReleased('b');
    slotWaiters.slotReleased('a');
    await waits[0];
    expect(served).toEqual(['first']);
    slotWaiters.slotReleased('a');
    await waits[1];
    expect(served).toEqual(['first', 'second']);
  });

  test('is limited for an endpoint that releases no slots', async () => {
    const slotWaiters = createSlotWaiters(waiterOptions);
    expect(slotWaiters.shouldWait('a')).toBe(true);
    const first = slotWaiters.wait('a', 10_000);
    expect(slotWaiters.shouldWait('a')).toBe(false);
    expect(slotWaiters.shouldWait('b')).toBe(true);
    slotWaiters.slotReleased('a');
    await first;
    await slotWaiters.wait('a', 1);
  });

  test('is unlimited for an endpoint with recent releases', async () => {
    let now = 1_000;
    const slotWaiters = createSlotWaiters({ ...waiterOptions, now: () => now });
    slotWaiters.slotReleased('a');
    const waits = [slotWaiters.wait('a', 10_000), slotWaiters.wait('a', 10_000)];
    now = 1_500;
    expect(slotWaiters.shouldWait('a')).toBe(true);
    now = 1_501;
    expect(slotWaiters.shouldWait('a')).toBe(false);
    for (const _ of waits) slotWaiters.slotReleased('a');
    await Promise.all(waits);
  });

  test('lets a burst to a fast endpoint through without a wait in Temporal', async () => {
    const { worker, deliveryIds } = await arrangeDeliveries(database, 30);
    const service = worker(async () => httpAnswer(200), { slotWaitMs: 30_000 });
    const outcomes = await Promise.all(deliveryIds.map((id) => service.attempt(id, false, 1)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(deliveryIds.map(() => 'settled'));
  });
});
