import { describe, expect, test } from '@jest/globals';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createAttemptShares } from '../../domain/webhooks/attempt-slots.ts';
import { DeliveryAttemptEntity, WebhookDeliveryEntity } from '../../domain/webhooks/delivery.entity.ts';
import { createDeliveryService } from '../../domain/webhooks/delivery.service.ts';
import { WebhookEndpointEntity } from '../../domain/webhooks/endpoint.entity.ts';
import { secretContext } from '../../domain/webhooks/endpoint-secret.ts';
import { retryDelayMs } from '../../domain/webhooks/record-attempt.ts';
import { releaseHeldForEnabledEndpoints } from '../../domain/webhooks/release-held-deliveries.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Egress, EgressRequest, EgressResult } from '../../platform/egress/egress.ts';
import { newId } from '../../platform/ids.ts';
import { WEBHOOK_SCHEDULE_MS } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const secretBox = createSecretBox(Buffer.alloc(32, 7).toString('base64'));

const database = useWorkerDatabase();

const answered = (
  status: number,
  extra: { retryAfterMs?: number; headers?: Record<string, string> } = {},
): EgressResult => ({
  kind: 'response',
  status,
  body: 'answer',
  durationMs: 12,
  ...extra,
});

/** A pending delivery of a `message.complained` event to a receiver that returns `answers` one after the other. */
async function arrange(answers: EgressResult[], inboxIds: string[] | null = null) {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization);
  const endpointId = newId('webhookEndpoint');
  const { outbox, commands } = recordingOutbox();
  const notifications = createNotificationService({ outbox });
  const events = createWebhookEvents({ outbox });
  const posts: { url: string; post: EgressRequest }[] = [];
  const egress: Pick<Egress, 'post'> = {
    async post(url, post) {
      posts.push({ url, post });
      return answers.shift() ?? answered(200);
    },
  };
  await database.systemTransaction(async (transaction) => {
    await transaction.db
      .insertInto('webhook_endpoints')
      .values({
        id: endpointId,
        org_id: inbox.organizationId,
        env_id: inbox.environmentId,
        url: 'https://receiver.example/hook',
        events: ['message.complained'],
        inbox_ids: inboxIds,
        secret: secretBox.seal(SECRET, secretContext(endpointId)),
      })
      .execute();
    await events.record(transaction, {
      organizationId: inbox.organizationId,
      environmentId: inbox.environmentId,
      inboxId: inbox.id,
      type: 'message.complained',
      data: {
        message_id: 'msg_1',
        inbox_id: inbox.id,
        complained_recipients: ['ada@people.example'],
        feedback_type: 'abuse',
        complained_at: '2026-01-01T00:00:00.000Z',
      },
    });
  });
  const service = createDeliveryService({
    database,
    outbox,
    egress,
    secretBox,
    notifications,
    timeoutMs: 15_000,
    shares: createAttemptShares(50),
    random: () => 0.5,
  });
  const read = () =>
    database.systemTransaction(async ({ db }) => {
      const [delivery] = await db
        .selectFrom('webhook_deliveries')
        .select(columnsOf(WebhookDeliveryEntity))
        .where('endpoint_id', '=', endpointId)
        .execute();
      const attempts = delivery
        ? await db
            .selectFrom('webhook_delivery_attempts')
            .select(columnsOf(DeliveryAttemptEntity))
            .where('delivery_id', '=', delivery.id)
            .orderBy('number')
            .execute()
        : [];
      const endpoint = await db
        .selectFrom('webhook_endpoints')
        .select(columnsOf(WebhookEndpointEntity))
        .where('id', '=', endpointId)
        .executeTakeFirstOrThrow();
      return { delivery, attempts, endpoint };
    });
  return { service, posts, commands, outbox, read, inbox, id: (await read()).delivery?.id ?? '' };
}

describe('a delivery', () => {
  test('is recorded with its event and started once', async () => {
    const { commands, id, read } = await arrange([]);
    expect((await read()).delivery).toMatchObject({ status: 'pending', attempts: 0 });
    expect(commands.map(({ start }) => start?.workflowId)).toEqual([`webhook/${id}`]);
    const { endpointId } = (await read()).delivery ?? {};
    expect(commands[0]?.start).toMatchObject({
      taskQueue: 'webhooks',
      priority: { fairnessKey: endpointId, fairnessHolder: commands[0]?.start?.searchAttributes.OrgId },
      input: { deliveryId: id, generation: 1, endpointId },
      searchAttributes: { OrgId: expect.any(String), ResourceId: endpointId, Stage: 'delivering' },
    });
  });

  test('is not created for an endpoint limited to other inboxes', async () => {
    const { commands, read } = await arrange([], [newId('inbox')]);
    expect((await read()).delivery).toBeUndefined();
    expect(commands).toEqual([]);
  });

  test('carries the specified envelope and its signatures', async () => {
    const { service, posts, id, inbox } = await arrange([answered(204)]);
    await expect(service.attempt(id, false)).resolves.toMatchObject({ kind: 'settled', status: 'delivered' });
    const [{ url, post } = { url: '', post: undefined }] = posts;
    expect(url).toBe('https://receiver.example/hook');
    expect(JSON.parse(post?.body ?? '')).toEqual({
      id: expect.stringMatching(/^evt_/),
      type: 'message.complained',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      org_id: inbox.organizationId,
      env_id: inbox.environmentId,
      data: expect.objectContaining({ complained_recipients: ['ada@people.example'] }),
    });
    expect(post?.headers).toMatchObject({
      'x-service-signature': expect.stringMatching(/^[0-9a-f]{64}$/),
      'x-service-timestamp': expect.stringMatching(/^\d+$/),
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
  });

  test.each([200, 500])('keeps the headers of a response with %i, up to a bound', async (status) => {
    const many = Array.from({ length: 40 }, (_, index) => [
      `x-${index}${'n'.repeat(100)}`,
      'v'.repeat(9_999),
    ]);
    const headers = { 'content-type': 'text/plain', nul: 'a\0b', ...Object.fromEntries(many) };
    const { service, id, read } = await arrange([answered(status, { headers })]);
    await service.attempt(id, false);
    const kept = (await read()).attempts[0]?.responseHeaders ?? {};
    expect(kept).toMatchObject({ 'content-type': 'text/plain', nul: 'a\ufffdb' });
    expect(Object.keys(kept)).toHaveLength(30);
    expect(JSON.stringify(kept).length).toBeLessThan(30 * (64 + 256 + 10));
  });

  test('is exhausted after 8 recorded attempts', async () => {
    const { service, id, read, posts } = await arrange(Array.from({ length: 8 }, () => answered(500)));
    for (let attempt = 1; attempt < 8; attempt += 1) {
      const outcome = await service.attempt(id, true);
      expect(outcome).toMatchObject({
        kind: 'retry',
        attempts: attempt,
        delayMs: WEBHOOK_SCHEDULE_MS[attempt],
      });
    }
    await expect(service.attempt(id, true)).resolves.toMatchObject({ status: 'exhausted' });
    await expect(service.attempt(id, true)).resolves.toMatchObject({ status: 'exhausted' });
    const { delivery, attempts } = await read();
    expect(posts).toHaveLength(8);
    expect(delivery).toMatchObject({
      attempts: 8,
      lastStatusCode: 500,
      lastError: 'HTTP 500',
      nextAttemptAt: null,
    });
    expect(
      attempts.map(({ number, statusCode, responseBody, durationMs }) => ({
        number,
        statusCode,
        responseBody,
        durationMs,
      })),
    ).toEqual(
      Array.from({ length: 8 }, (_, index) => ({
        number: index + 1,
        statusCode: 500,
        responseBody: 'answer',
        durationMs: 12,
      })),
    );
  });

  test('waits until it is due, unless an attempt now is requested', async () => {
    const { service, id, posts } = await arrange([answered(500)]);
    await service.attempt(id, false);
    await expect(service.attempt(id, false)).resolves.toMatchObject({
      kind: 'not_due',
      attempts: 1,
      detail: 'HTTP 500',
    });
    expect(posts).toHaveLength(1);
    await expect(service.attempt(id, true)).resolves.toMatchObject({ status: 'delivered' });
  });

  test.each([301, 307, 400, 404, 429, 503])('counts status %i as a failure', async (status) => {
    const { service, id } = await arrange([answered(status)]);
    await expect(service.attempt(id, false)).resolves.toMatchObject({
      kind: 'retry',
      detail: `HTTP ${status}`,
    });
  });

  test('records a response body that PostgreSQL cannot store as is', async () => {
    const { service, id, read } = await arrange([
      { kind: 'response', status: 200, body: 'a\0b\ud800', durationMs: 1 },
    ]);
    await expect(service.attempt(id, false)).resolves.toMatchObject({ status: 'delivered' });
    expect((await read()).attempts[0]?.responseBody).toBe('a\u{fffd}b\u{fffd}');
  });

  test('is held and its endpoint disabled after a 410 response', async () => {
    const { service, id, read } = await arrange([answered(410)]);
    await expect(service.attempt(id, false)).resolves.toMatchObject({ kind: 'settled', status: 'held' });
    const { endpoint, delivery } = await read();
    expect(endpoint).toMatchObject({
      disabled: true,
      disabledReason: 'The receiver responded with 410 Gone.',
    });
    expect(delivery).toMatchObject({ status: 'held', completedAt: null });
    // By an operator whose cancellation arrived during the attempt.
    await expect(service.cancel(id, delivery?.generation)).resolves.toBe('canceled');
    await expect(service.cancel(id, delivery?.generation)).resolves.toBe('canceled');
  });

  test('is canceled without a request if its endpoint was deleted meanwhile', async () => {
    const { service, id, read, posts } = await arrange([]);
    const { endpoint } = await read();
    await database.db
      .updateTable('webhook_endpoints')
      .set({ deleted_at: new Date() })
      .where('id', '=', endpoint.id)
      .execute();
    await expect(service.attempt(id, true)).resolves.toMatchObject({ kind: 'settled', status: 'canceled' });
    expect(posts).toEqual([]);
    expect((await read()).delivery).toMatchObject({ lastError: 'The endpoint was deleted.' });
  });

  test('gets the full schedule again when released after a 410, with attempt numbers continued', async () => {
    const { service, id, read, outbox } = await arrange([answered(500), answered(410), answered(500)]);
    await service.attempt(id, true);
    await service.attempt(id, true);
    await database.systemTransaction(async ({ db }) => {
      const { endpoint } = await read();
      await db
        .updateTable('webhook_endpoints')
        .set({ disabled: false })
        .where('id', '=', endpoint.id)
        .execute();
    });
    await expect(releaseHeldForEnabledEndpoints(database, outbox)).resolves.toBeGreaterThanOrEqual(1);
    await expect(service.attempt(id, false)).resolves.toMatchObject({
      kind: 'retry',
      delayMs: WEBHOOK_SCHEDULE_MS[1],
    });
    const { delivery, attempts } = await read();
    expect(delivery).toMatchObject({ status: 'pending', generation: 2, attempts: 3 });
    expect(attempts.map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  test('is final when the egress policy blocks the URL', async () => {
    const { service, id, read } = await arrange([{ kind: 'blocked', reason: 'a private address' }]);
    await expect(service.attempt(id, false)).resolves.toMatchObject({ kind: 'settled', status: 'blocked' });
    expect((await read()).delivery?.lastError).toBe('Not sent: a private address');
  });

  test('shows an attempt interrupted by a crash as unfinished and makes the next one when its lease ends', async () => {
    const { service, id, read, posts } = await arrange([]);
    const dying = createDeliveryService({
      database,
      outbox: recordingOutbox().outbox,
      egress: { post: () => Promise.reject(new Error('killed')) },
      secretBox,
      notifications: createNotificationService(recordingOutbox()),
      timeoutMs: 15_000,
      shares: createAttemptShares(50),
      random: () => 0.5,
    });
    await expect(dying.attempt(id, false)).rejects.toThrow('killed');
    // The worker may live, and wait for the receiver.
    await expect(service.attempt(id, false)).resolves.toMatchObject({ kind: 'busy', attempts: 1 });
    expect(posts).toEqual([]);
    await database.db
      .updateTable('webhook_slots')
      .set({ leased_until: new Date(Date.now() - 1) })
      .where('delivery_id', '=', id)
      .execute();
    await expect(service.attempt(id, true)).resolves.toMatchObject({ status: 'delivered' });
    const { attempts } = await read();
    expect(attempts.map(({ number, finishedAt }) => [number, finishedAt !== null])).toEqual([
      [1, false],
      [2, true],
    ]);
    expect(posts).toHaveLength(1);
  });

  test('can be canceled while pending, not afterwards', async () => {
    const waiting = await arrange([answered(500)]);
    await waiting.service.attempt(waiting.id, false);
    await expect(waiting.service.cancel(waiting.id)).resolves.toBe('canceled');
    await expect(waiting.service.attempt(waiting.id, true)).resolves.toMatchObject({ status: 'canceled' });
    const done = await arrange([]);
    await done.service.attempt(done.id, false);
    await expect(done.service.cancel(done.id)).resolves.toBe('delivered');
  });
});

describe('the delay before an attempt', () => {
  test.each([
    { attempt: 2, random: 0, pause: 4_500 },
    { attempt: 2, random: 0.5, pause: 5_000 },
    { attempt: 8, random: 0.999_999, pause: 39_600_000 },
  ])('is $pause ms for attempt $attempt with random value $random', ({ attempt, random, pause }) => {
    expect(retryDelayMs(attempt, answered(500), () => random)).toBeCloseTo(pause, -2);
  });

  test.each([
    { retryAfterMs: 60_000, pause: 60_000 },
    { retryAfterMs: 1_000, pause: 5_000 },
    { retryAfterMs: 86_400_000, pause: 3_600_000 },
  ])('is $pause ms with a Retry-After of $retryAfterMs ms', ({ retryAfterMs, pause }) => {
    expect(retryDelayMs(2, answered(429, { retryAfterMs }), () => 0.5)).toBe(pause);
  });
});
