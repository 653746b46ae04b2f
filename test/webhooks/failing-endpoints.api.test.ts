import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createBulkJobRunner } from '../../domain/webhooks/bulk-job-runner.ts';
import { FAILING_AFTER_FAILURES, overdueProbes } from '../../domain/webhooks/endpoint-health.ts';
import { holdDeliveriesOfDisabledEndpoints } from '../../domain/webhooks/hold-deliveries.ts';
import {
  RELEASE_BATCH_SIZE,
  releaseHeldForEnabledEndpoints,
} from '../../domain/webhooks/release-held-deliveries.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { newId } from '../../platform/ids.ts';
import { PROBE_NOW } from '../../workflows/webhooks/probe-endpoint.contract.ts';
import { eventually } from '../support/eventually.ts';
import { countRows, query } from '../support/query.ts';
import { useTestApp, useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { arrangeDeliveries, httpAnswer, type TestDeliveries } from '../support/webhook-deliveries.ts';

const app = useTestApp();
const database = useWorkerDatabase();

const down = async (): Promise<EgressResult> => ({ kind: 'failed', error: 'ECONNREFUSED', durationMs: 1 });
const up = async () => httpAnswer(200);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** An endpoint that has been failing for some time, with held deliveries. */
async function arrangeFailing(count: number, failingForMinutes = 3): Promise<TestDeliveries> {
  const since = minutesAgo(failingForMinutes);
  const arranged = await arrangeDeliveries(database, count, {
    failing_since: since,
    consecutive_failures: FAILING_AFTER_FAILURES,
    holding_since: since,
    probe_generation: 1,
  });
  await query(
    database,
    sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing', next_attempt_at = null
      where endpoint_id = ${arranged.endpointId}`,
  );
  return arranged;
}

const probeOf = ({ endpointId }: TestDeliveries, generation = 1) => ({ endpointId, generation });
const startedIds = ({ commands }: TestDeliveries) => commands.flatMap(({ start }) => start?.workflowId ?? []);
const statusesOf = async ({ deliveries }: TestDeliveries) => (await deliveries()).map(({ status }) => status);

/** Signals to the probe from the API. */
const wakesOf = ({ endpointId }: TestDeliveries) =>
  app.commands.filter(({ signal }) => signal?.workflowId === `webhook-probe/${endpointId}/1`);

async function recordEvent({ organization, outbox }: TestDeliveries): Promise<void> {
  const inboxId = newId('inbox');
  await database.systemTransaction((transaction) =>
    createWebhookEvents({ outbox }).record(transaction, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId,
      type: 'message.received',
      data: buildSampleData('message.received', { inboxId, time: new Date() }),
    }),
  );
}

const call = ({ organization: { token } }: TestDeliveries, path: string, method = 'GET', body?: object) =>
  app.call(path, { method, token, body } as Parameters<typeof app.call>[1]);

describe('from its tenth failure in a row an endpoint is failing', () => {
  test('one probe starts, failed deliveries are held with their attempts, and new ones have no run', async () => {
    const arranged = await arrangeDeliveries(database, 13);
    const service = arranged.worker(down);
    for (const id of arranged.deliveryIds.slice(0, 9))
      await expect(service.attempt(id, false, 1)).resolves.toMatchObject({ kind: 'retry' });
    expect(arranged.commands).toEqual([]);
    for (const id of arranged.deliveryIds.slice(9, 12))
      await expect(service.attempt(id, false, 1)).resolves.toMatchObject({
        kind: 'settled',
        status: 'held',
        detail: 'ECONNREFUSED',
      });
    expect(startedIds(arranged)).toEqual([`webhook-probe/${arranged.endpointId}/1`]);
    expect(arranged.commands[0]?.start).toMatchObject({
      priority: { fairnessKey: arranged.organization.organizationId },
      searchAttributes: {
        OrgId: arranged.organization.organizationId,
        ResourceId: arranged.endpointId,
        Stage: 'probing',
      },
    });
    await recordEvent(arranged);
    expect(startedIds(arranged)).toHaveLength(1);
    expect((await arranged.deliveries()).slice(8)).toMatchObject([
      { status: 'pending', attempts: 1 },
      ...[10, 11, 12].map(() => ({ status: 'held', heldFor: 'endpoint_failing', attempts: 1 })),
      { status: 'pending', attempts: 0 },
      { status: 'held', heldFor: 'endpoint_failing', attempts: 0, nextAttemptAt: null },
    ]);
    expect(await arranged.endpoint()).toMatchObject({ holdingSince: expect.any(Date), probeGeneration: 1 });
  });

  test('a run that finds no slot ends, and its delivery is held', async () => {
    const arranged = await arrangeDeliveries(database, 3, {
      failing_since: minutesAgo(3),
      consecutive_failures: FAILING_AFTER_FAILURES,
    });
    const [first = '', second = '', third = ''] = arranged.deliveryIds;
    const requested = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<EgressResult>();
    const slow = arranged.worker(() => {
      requested.resolve();
      return answer.promise;
    });
    const attempt = slow.attempt(first, false, 1);
    await requested.promise;
    await expect(arranged.worker(up).attempt(second, false, 1)).resolves.toMatchObject({ status: 'held' });
    // One that a caller retried is next.
    await expect(arranged.worker(up).attempt(third, true, 1)).resolves.toMatchObject({ status: 'held' });
    expect((await arranged.deliveries()).slice(1)).toMatchObject([
      { heldFor: 'endpoint_failing', attempts: 0, nextAttemptAt: null },
      { heldFor: 'endpoint_failing', attempts: 0, nextAttemptAt: expect.any(Date) },
    ]);
    expect(arranged.commands).toMatchObject([
      { start: { workflowId: `webhook-probe/${arranged.endpointId}/1` } },
      { signal: { workflowId: `webhook-probe/${arranged.endpointId}/1`, signalName: PROBE_NOW } },
    ]);
    answer.resolve(httpAnswer(200));
    await expect(attempt).resolves.toMatchObject({ status: 'delivered' });
    // The success of a run wakes the probe, which releases the others.
    expect(arranged.commands.at(-1)).toMatchObject({ signal: { signalName: PROBE_NOW } });
    expect(await arranged.endpoint()).toMatchObject({
      consecutiveFailures: 0,
      holdingSince: expect.any(Date),
    });
  });

  test('replays leave rows, and those already waiting stay as they are', async () => {
    const arranged = await arrangeFailing(3);
    const [exhausted = '', waiting = ''] = arranged.deliveryIds;
    await query(
      database,
      sql`update webhook_deliveries set status = 'exhausted', held_for = null, attempts = 8, completed_at = now() - interval '1 minute' where id = ${exhausted}`,
    );
    const path = `/webhooks/endpoints/${arranged.endpointId}/replay`;
    const job = (
      await call(arranged, path, 'POST', { since: '2026-01-01T00:00:00Z', only_failed: true })
    ).json();
    const { outbox, commands } = recordingOutbox();
    await createBulkJobRunner({ notifications: createNotificationService({ outbox }), database, outbox }).run(
      job.id,
      () => undefined,
    );
    expect(commands).toEqual([]);
    expect((await arranged.deliveries()).slice(0, 2)).toMatchObject([
      {
        id: exhausted,
        status: 'held',
        heldFor: 'endpoint_failing',
        attempts: 8,
        priorAttempts: 8,
        completedAt: null,
      },
      { id: waiting, status: 'held', generation: 1 },
    ]);
  });

  test('12 dead endpoints with 40 messages each cost one probe each, besides the attempts before the tenth failure', async () => {
    const endpoints = await Promise.all(Array.from({ length: 12 }, () => arrangeDeliveries(database, 30)));
    for (const arranged of endpoints) {
      const service = arranged.worker(down, { slotWaitMs: 0 });
      // Every run tries, all at the same time, and again when its retry is due.
      for (let round = 0; round < 3; round += 1) {
        await query(
          database,
          sql`update webhook_deliveries set next_attempt_at = date_trunc('milliseconds', now())
            where endpoint_id = ${arranged.endpointId} and status = 'pending'`,
        );
        const pending = (await arranged.deliveries()).filter(({ status }) => status === 'pending');
        await Promise.all(pending.map(({ id }) => service.attempt(id, false, 1)));
      }
      for (let message = 0; message < 10; message += 1) await recordEvent(arranged);
      const statuses = await statusesOf(arranged);
      expect(statuses).toHaveLength(40);
      expect(statuses.filter((status) => status === 'pending').length).toBeLessThanOrEqual(10);
      expect(startedIds(arranged)).toEqual([`webhook-probe/${arranged.endpointId}/1`]);
    }
  });
});

describe('a probe', () => {
  test('attempts the oldest held delivery every minute, after ten minutes every five', async () => {
    const arranged = await arrangeFailing(3);
    const probes = arranged.probe(async () => httpAnswer(503));
    await expect(probes.attempt({ ...probeOf(arranged), now: false })).resolves.toEqual({
      kind: 'repeat',
      delayMs: 60_000,
      detail: '11 failures in a row: HTTP 503',
    });
    await query(
      database,
      sql`update webhook_endpoints set holding_since = ${minutesAgo(11)} where id = ${arranged.endpointId}`,
    );
    await expect(probes.attempt({ ...probeOf(arranged), now: false })).resolves.toMatchObject({
      delayMs: 300_000,
    });
    expect(await arranged.deliveries()).toMatchObject([
      // The attempts show, but none counts against the schedule of eight.
      { status: 'held', heldFor: 'endpoint_failing', attempts: 2, priorAttempts: 2, lastStatusCode: 503 },
      { attempts: 0 },
      { attempts: 0 },
    ]);
  });

  test('is first made a minute after the tenth failure, or when requested', async () => {
    const arranged = await arrangeFailing(1, 0.5);
    const probes = arranged.probe(down);
    const wait = await probes.attempt({ ...probeOf(arranged), now: false });
    expect(wait).toMatchObject({ kind: 'repeat', detail: 'The first probe is due after a minute.' });
    expect(wait.kind === 'repeat' && wait.delayMs).toBeLessThanOrEqual(30_000);
    expect((await arranged.deliveries())[0]?.attempts).toBe(0);
    await probes.attempt({ ...probeOf(arranged), now: true });
    expect((await arranged.deliveries())[0]?.attempts).toBe(1);
  });

  test('honors Retry-After of up to an hour', async () => {
    const arranged = await arrangeFailing(1);
    const probes = arranged.probe(async () => ({ ...httpAnswer(503), retryAfterMs: 86_400_000 }));
    await expect(probes.attempt({ ...probeOf(arranged), now: false })).resolves.toMatchObject({
      delayMs: 3_600_000,
    });
  });

  test('uses no attempt while another is in progress or the usage limit is reached', async () => {
    const arranged = await arrangeFailing(1);
    await query(
      database,
      sql`insert into webhook_slots (endpoint_id, slot, org_id, leased_until)
        select ${arranged.endpointId}, slot, ${arranged.organization.organizationId}, now() + interval '1 minute'
        from generate_series(0, 9) slot`,
    );
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: true })).resolves.toMatchObject({
      kind: 'repeat',
      detail: 'Another attempt is in progress.',
    });
    const limited = arranged.probe(up, { quota: { remaining: async () => 0 } });
    await expect(limited.attempt({ ...probeOf(arranged), now: true })).resolves.toMatchObject({
      detail: 'Not probed: the limit of webhook_deliveries is reached.',
    });
    expect(await arranged.deliveries()).toMatchObject([{ status: 'held', attempts: 0, priorAttempts: 0 }]);
  });

  test('of a crashed worker leaves an unfinished attempt, and the next one follows', async () => {
    const arranged = await arrangeFailing(1);
    const killed = arranged.probe(() => Promise.reject(new Error('killed')));
    await expect(killed.attempt({ ...probeOf(arranged), now: true })).rejects.toThrow('killed');
    await query(
      database,
      sql`update webhook_slots set leased_until = now() where endpoint_id = ${arranged.endpointId}`,
    );
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: true })).resolves.toEqual({
      kind: 'ended',
      status: 'recovered',
    });
    expect(await arranged.deliveries()).toMatchObject([{ status: 'delivered', attempts: 2 }]);
  });

  test('that finds nothing waiting ends; the next failure starts another', async () => {
    const arranged = await arrangeFailing(1);
    const [id = ''] = arranged.deliveryIds;
    await call(arranged, `/webhooks/deliveries/${id}/cancel`, 'POST');
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: false })).resolves.toEqual({
      kind: 'ended',
      status: 'released',
    });
    await recordEvent(arranged);
    const [, next] = await arranged.deliveries();
    expect(next).toMatchObject({ status: 'pending' });
    await arranged.worker(down).attempt(next?.id ?? '', false, 1);
    expect((await arranged.deliveries())[1]).toMatchObject({ status: 'held', heldFor: 'endpoint_failing' });
    expect(startedIds(arranged).at(-1)).toBe(`webhook-probe/${arranged.endpointId}/2`);
  });

  test('of an earlier run changes nothing', async () => {
    const arranged = await arrangeFailing(1);
    await query(
      database,
      sql`update webhook_endpoints set probe_generation = 2 where id = ${arranged.endpointId}`,
    );
    const probes = arranged.probe(up);
    for (const outcome of [
      probes.attempt({ ...probeOf(arranged), now: true }),
      probes.release(probeOf(arranged)),
    ])
      await expect(outcome).resolves.toEqual({ kind: 'ended', status: 'superseded' });
    expect(await arranged.deliveries()).toMatchObject([{ status: 'held', attempts: 0 }]);
  });
});

describe('the retry of a delivery to a failing endpoint', () => {
  test('makes it next, whatever its status, and wakes the probe', async () => {
    const arranged = await arrangeFailing(4);
    const [, canceled = '', held = ''] = arranged.deliveryIds;
    await call(arranged, `/webhooks/deliveries/${canceled}/cancel`, 'POST');
    for (const id of [held, canceled]) {
      const response = await call(arranged, `/webhooks/deliveries/${id}/retry`, 'POST');
      expect(response.statusCode).toBe(202);
      expect(response.json()).toMatchObject({
        status: 'held',
        held_for: 'endpoint_failing',
        next_attempt_at: expect.any(String),
        completed_at: null,
      });
    }
    const workflowId = `webhook-probe/${arranged.endpointId}/1`;
    expect(wakesOf(arranged)).toHaveLength(2);
    expect(wakesOf(arranged)[0]).toMatchObject({ start: { workflowId }, signal: { signalName: PROBE_NOW } });

    const probes = arranged.probe(down);
    // While another request waits, the next probe follows soon.
    await expect(probes.attempt({ ...probeOf(arranged), now: true })).resolves.toMatchObject({
      delayMs: 1_000,
    });
    await expect(probes.attempt({ ...probeOf(arranged), now: false })).resolves.toMatchObject({
      delayMs: 60_000,
    });
    expect(
      (await arranged.deliveries()).map(({ attempts, nextAttemptAt }) => [attempts, nextAttemptAt]),
    ).toEqual([
      [0, null],
      [1, null],
      [1, null],
      [0, null],
    ]);
  });

  test('starts a probe if none runs', async () => {
    const arranged = await arrangeDeliveries(database, 1, {
      failing_since: minutesAgo(60),
      consecutive_failures: 12,
    });
    const [id = ''] = arranged.deliveryIds;
    await call(arranged, `/webhooks/deliveries/${id}/cancel`, 'POST');
    await call(arranged, `/webhooks/deliveries/${id}/retry`, 'POST');
    const started = app.commands.map(({ start }) => start?.workflowId);
    expect(started).toContain(`webhook-probe/${arranged.endpointId}/1`);
    // It attempts the delivery without waiting for the first interval.
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: false })).resolves.toMatchObject({
      status: 'recovered',
    });
  });

  test('starts it at once while the backlog is released', async () => {
    const arranged = await arrangeFailing(2);
    const [, id = ''] = arranged.deliveryIds;
    await query(
      database,
      sql`update webhook_endpoints set consecutive_failures = 0, failing_since = null where id = ${arranged.endpointId}`,
    );
    const response = await call(arranged, `/webhooks/deliveries/${id}/retry`, 'POST');
    expect(response.json()).toMatchObject({ status: 'pending', held_for: null });
    expect(await statusesOf(arranged)).toEqual(['held', 'pending']);
  });
});

test('a test event to a failing endpoint is probed next', async () => {
  const arranged = await arrangeFailing(1);
  const path = `/webhooks/endpoints/${arranged.endpointId}/test`;
  const sent = (await call(arranged, path, 'POST', {})).json();
  expect(sent).toMatchObject({ status: 'held', held_for: 'endpoint_failing', test: true });
  await arranged.probe(up).attempt({ ...probeOf(arranged), now: true });
  expect((await call(arranged, `/webhooks/deliveries/${sent.id}`)).json()).toMatchObject({
    status: 'delivered',
    held_for: null,
  });
});

test('a new URL of a failing endpoint is probed at once', async () => {
  const arranged = await arrangeFailing(1);
  await call(arranged, `/webhooks/endpoints/${arranged.endpointId}`, 'PATCH', {
    url: 'https://new.receiver.example/hook',
  });
  expect(wakesOf(arranged)).toHaveLength(1);
});

test('the endpoint shows that it is failing, since when, and how many deliveries wait', async () => {
  const arranged = await arrangeFailing(3);
  const { failingSince } = await arranged.endpoint();
  const path = `/webhooks/endpoints/${arranged.endpointId}`;
  const shown = {
    failing: true,
    failing_since: failingSince?.toISOString(),
    held_deliveries: 3,
    pending_deliveries: 0,
    consecutive_failures: 10,
    last_success_at: null,
  };
  expect((await call(arranged, path)).json()).toMatchObject(shown);
  expect((await call(arranged, '/webhooks/endpoints')).json().data).toMatchObject([shown]);
  const held = await call(arranged, `${path}/deliveries?status=held`);
  expect(held.json().data).toMatchObject(
    [1, 2, 3].map(() => ({ status: 'held', held_for: 'endpoint_failing', next_attempt_at: null })),
  );
  const probes = arranged.probe(up);
  await probes.attempt({ ...probeOf(arranged), now: true });
  await probes.release(probeOf(arranged));
  expect((await call(arranged, path)).json()).toMatchObject({
    failing: false,
    failing_since: null,
    held_deliveries: 0,
    pending_deliveries: 2,
    consecutive_failures: 0,
    last_success_at: expect.any(String),
  });
});

describe('after a successful probe', () => {
  test('deliveries start oldest first, 200 at a time, new events behind them, with their attempts', async () => {
    const arranged = await arrangeFailing(2 * RELEASE_BATCH_SIZE + 50);
    const [first = '', second = ''] = arranged.deliveryIds;
    await query(
      database,
      sql`update webhook_deliveries set attempts = 5, prior_attempts = 2 where id = ${second}`,
    );
    const service = arranged.worker(up);
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: false })).resolves.toMatchObject({
      status: 'recovered',
    });
    const started = () => startedIds(arranged).map((id) => id.split('/')[1] ?? '');
    const attemptStarted = async () => {
      for (const { id, generation, status } of await arranged.deliveries())
        if (status === 'pending') await service.attempt(id, false, generation);
    };
    const oldest = arranged.deliveryIds.filter((id) => id !== first).sort();

    await expect(arranged.probe(up).release(probeOf(arranged))).resolves.toMatchObject({ kind: 'repeat' });
    expect(started().sort()).toEqual(oldest.slice(0, RELEASE_BATCH_SIZE));
    expect((await arranged.deliveries()).find(({ id }) => id === second)).toMatchObject({
      status: 'pending',
      generation: 2,
      attempts: 5,
      priorAttempts: 2,
    });
    await recordEvent(arranged);
    // Another worker continues after a crash. The next batch waits until this one has been attempted.
    await expect(arranged.probe(up).release(probeOf(arranged))).resolves.toMatchObject({
      detail: 'Waiting until the last batch has been attempted.',
    });
    expect(started()).toHaveLength(RELEASE_BATCH_SIZE);

    await attemptStarted();
    await expect(arranged.probe(up).release(probeOf(arranged))).resolves.toMatchObject({ kind: 'repeat' });
    expect(started().sort()).toEqual(oldest.slice(0, 2 * RELEASE_BATCH_SIZE));
    await attemptStarted();
    await expect(arranged.probe(up).release(probeOf(arranged))).resolves.toEqual({
      kind: 'ended',
      status: 'released',
    });
    await attemptStarted();
    const deliveries = await arranged.deliveries();
    expect(deliveries).toHaveLength(2 * RELEASE_BATCH_SIZE + 51);
    expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['delivered']));
    expect(new Set(started()).size).toBe(started().length);
    expect(await arranged.endpoint()).toMatchObject({ holdingSince: null });
    await recordEvent(arranged);
    expect((await arranged.deliveries()).filter(({ status }) => status === 'pending')).toHaveLength(1);
  });

  test('an endpoint that fails again gets the next probe run, and the release stops', async () => {
    const arranged = await arrangeFailing(RELEASE_BATCH_SIZE + 20);
    await arranged.probe(up).attempt({ ...probeOf(arranged), now: true });
    await arranged.probe(up).release(probeOf(arranged));
    const pending = (await arranged.deliveries()).filter(({ status }) => status === 'pending');
    const service = arranged.worker(down);
    for (const { id, generation } of pending) await service.attempt(id, false, generation);
    expect(startedIds(arranged).at(-1)).toBe(`webhook-probe/${arranged.endpointId}/2`);
    await expect(arranged.probe(up).release(probeOf(arranged))).resolves.toEqual({
      kind: 'ended',
      status: 'superseded',
    });
    const left = await arranged.deliveries();
    expect(left.filter(({ status }) => status === 'pending')).toHaveLength(FAILING_AFTER_FAILURES - 1);
    expect(left.filter(({ status, attempts }) => status === 'held' && attempts === 1)).toHaveLength(
      RELEASE_BATCH_SIZE - FAILING_AFTER_FAILURES + 1,
    );
  });

  test('an event recorded while the release ends is released by the sweep', async () => {
    const arranged = await arrangeFailing(1);
    await query(
      database,
      sql`update webhook_endpoints set consecutive_failures = 0, failing_since = null, holding_since = null
        where id = ${arranged.endpointId}`,
    );
    await releaseHeldForEnabledEndpoints(database, arranged.outbox);
    expect(await statusesOf(arranged)).toEqual(['pending']);
    expect(startedIds(arranged)).toContain(`webhook/${arranged.deliveryIds[0]}/2`);
  });
});

describe('the reconciler', () => {
  test('finds the probes of failing endpoints and restarts them', async () => {
    const arranged = await arrangeFailing(1);
    const workflowId = `webhook-probe/${arranged.endpointId}/1`;
    const find = async () =>
      (await overdueProbes(database).take(1_000)).filter(({ start }) => start.workflowId === workflowId);
    expect(await find()).toMatchObject([
      { whenStopped: 'restart', start: { workflowType: 'probeEndpoint' } },
    ]);
    expect(await find()).toEqual([]);
  });

  test('starts a probe for deliveries that wait for a failing endpoint without one', async () => {
    const arranged = await arrangeFailing(1);
    await query(
      database,
      sql`update webhook_endpoints set holding_since = null where id = ${arranged.endpointId}`,
    );
    await releaseHeldForEnabledEndpoints(database, arranged.outbox);
    expect(startedIds(arranged)).toContain(`webhook-probe/${arranged.endpointId}/2`);
    expect(await statusesOf(arranged)).toEqual(['held']);
  });
});

describe('a failing endpoint', () => {
  test.each([
    ['after five days of failures', 6 * 24 * 60, 500, 'Every attempt failed for 5 days.'],
    ['after a 410 response to the probe', 3, 410, 'The receiver responded with 410 Gone.'],
  ])('is disabled %s, and its probe ends', async (_when, minutes, status, reason) => {
    const arranged = await arrangeFailing(3, minutes);
    const probes = arranged.probe(async () => httpAnswer(status));
    await expect(probes.attempt({ ...probeOf(arranged), now: false })).resolves.toEqual({
      kind: 'ended',
      status: 'disabled',
    });
    expect(await arranged.endpoint()).toMatchObject({
      disabled: true,
      disabledReason: reason,
      holdingSince: null,
    });
    const held = await call(arranged, `/webhooks/endpoints/${arranged.endpointId}/deliveries`);
    expect(held.json().data).toMatchObject([1, 2, 3].map(() => ({ held_for: 'endpoint_disabled' })));
    await expect(probes.release(probeOf(arranged))).resolves.toMatchObject({ status: 'disabled' });
  });

  test('that is disabled keeps its deliveries, and enabling starts them behind no probe', async () => {
    const arranged = await arrangeFailing(RELEASE_BATCH_SIZE + 1);
    const path = `/webhooks/endpoints/${arranged.endpointId}`;
    await query(
      database,
      sql`update webhook_deliveries set attempts = 3 where endpoint_id = ${arranged.endpointId}`,
    );
    await call(arranged, path, 'PATCH', { disabled: true });
    expect(new Set((await arranged.deliveries()).map(({ heldFor }) => heldFor))).toEqual(new Set([null]));
    expect(wakesOf(arranged)).toHaveLength(1);
    const enabled = await call(arranged, path, 'PATCH', { disabled: false });
    expect(enabled.json()).toMatchObject({ disabled: false, failing: false, held_deliveries: 1 });
    const rows = await arranged.deliveries();
    expect(rows.filter(({ status }) => status === 'pending')).toHaveLength(RELEASE_BATCH_SIZE);
    // With the full schedule, as before.
    expect(rows[0]).toMatchObject({ attempts: 3, priorAttempts: 3 });
    // More than a batch: a run releases the rest, and new deliveries queue behind it.
    expect(app.commands.map(({ start }) => start?.workflowId)).toContain(
      `webhook-probe/${arranged.endpointId}/2`,
    );
    await recordEvent(arranged);
    expect((await arranged.deliveries()).at(-1)).toMatchObject({ status: 'held' });
    const run = probeOf(arranged, 2);
    await expect(arranged.probe(down).attempt({ ...run, now: false })).resolves.toMatchObject({
      status: 'recovered',
    });
    const service = arranged.worker(up);
    for (const { id, generation } of rows) await service.attempt(id, false, generation);
    await expect(arranged.probe(up).release(run)).resolves.toMatchObject({ status: 'released' });
    expect((await statusesOf(arranged)).filter((status) => status === 'held')).toEqual([]);
  });

  test('that was disabled with more deliveries than one transaction holds is completed by the sweep', async () => {
    const arranged = await arrangeFailing(1);
    await query(
      database,
      sql`update webhook_endpoints set disabled = true where id = ${arranged.endpointId}`,
    );
    await holdDeliveriesOfDisabledEndpoints(database);
    expect(await arranged.deliveries()).toMatchObject([{ status: 'held', heldFor: null }]);
  });

  test('that is deleted cancels what waits, and its probe ends', async () => {
    const arranged = await arrangeFailing(2);
    await call(arranged, `/webhooks/endpoints/${arranged.endpointId}`, 'DELETE');
    expect(await statusesOf(arranged)).toEqual(['canceled', 'canceled']);
    expect(wakesOf(arranged)).toHaveLength(1);
    await expect(arranged.probe(up).attempt({ ...probeOf(arranged), now: false })).resolves.toEqual({
      kind: 'ended',
      status: 'deleted',
    });
  });

  test('does not hold back events of the same organization to others', async () => {
    const dead = await arrangeFailing(1);
    const healthy = await call(dead, '/webhooks/endpoints', 'POST', {
      url: 'https://healthy.example/hook',
      events: ['message.received'],
    });
    await recordEvent(dead);
    const { id } = healthy.json();
    const path = `/webhooks/endpoints/${id}/deliveries`;
    expect((await call(dead, path)).json().data).toMatchObject([{ status: 'pending' }]);
    await eventually(() =>
      expect(startedIds(dead).filter((run) => run.startsWith('webhook/'))).toHaveLength(1),
    );
    const events = await countRows(
      database.db.selectFrom('events').select('id').where('org_id', '=', dead.organization.organizationId),
    );
    expect(events).toBe(2);
  });
});
