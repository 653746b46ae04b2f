import { describe, expect, test } from '@jest/globals';
import { NotificationEntity } from '../../domain/notifications/notification.entity.ts';
import { holdDeliveriesOfDisabledEndpoints } from '../../domain/webhooks/hold-deliveries.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { newId } from '../../platform/ids.ts';
import { useTestApp, useWorkerDatabase } from '../support/resources.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const app = useTestApp();
const database = useWorkerDatabase();

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
const notificationsOf = (organizationId: string) =>
  database.db
    .selectFrom('notifications')
    .select(columnsOf(NotificationEntity))
    .where('org_id', '=', organizationId)
    .orderBy('id')
    .execute();

async function addMember(organizationId: string, role: 'owner' | 'admin'): Promise<string> {
  const userId = newId('user');
  await database.systemTransaction(async ({ db }) => {
    await db
      .insertInto('users')
      .values({ id: userId, email: `${userId}@example.test`, name: null, password_hash: null })
      .execute();
    await db.insertInto('members').values({ org_id: organizationId, user_id: userId, role }).execute();
  });
  return userId;
}

describe('an endpoint whose every attempt failed for five days', () => {
  test('is disabled, its deliveries are held, and each owner gets an email', async () => {
    const arranged = await arrangeDeliveries(database, 3, {
      failing_since: daysAgo(5.01),
      consecutive_failures: 50,
    });
    const { organizationId, ownerId } = arranged.organization;
    const second = await addMember(organizationId, 'owner');
    await addMember(organizationId, 'admin');
    const service = arranged.worker(async () => httpAnswer(500));
    const [first = '', ...others] = arranged.deliveryIds;
    await expect(service.attempt(first, false, 1)).resolves.toMatchObject({ status: 'held' });
    expect(await arranged.endpoint()).toMatchObject({
      disabled: true,
      disabledReason: 'Every attempt failed for 5 days.',
    });
    expect(await arranged.deliveries()).toMatchObject([
      { status: 'held', attempts: 1, lastStatusCode: 500, nextAttemptAt: null },
      ...others.map(() => ({ status: 'held', attempts: 0, nextAttemptAt: null })),
    ]);
    const emails = await notificationsOf(organizationId);
    expect(emails.map(({ userId }) => userId).sort()).toEqual([ownerId, second].sort());
    expect(emails[0]).toMatchObject({
      template: 'webhook-endpoint-disabled',
      status: 'pending',
      params: { endpointId: arranged.endpointId, url: 'https://receiver.example/hook' },
    });
    expect(arranged.commands.map(({ start }) => start?.workflowId).sort()).toEqual(
      emails.map(({ id }) => `notification/${id}`).sort(),
    );
    expect(arranged.commands.map(({ start }) => start?.input)).toEqual(
      arranged.commands.map(({ start }) => ({ notificationId: start?.searchAttributes.ResourceId })),
    );
    // The run of a held delivery ends without an attempt.
    await expect(service.attempt(others[0] ?? '', false, 1)).resolves.toMatchObject({ status: 'held' });
  });

  test.each<[string, EgressResult]>([
    ['is blocked', { kind: 'blocked', reason: 'a private address' }],
    ['does not answer', { kind: 'failed', error: 'timeout', durationMs: 15_000 }],
  ])('counts every kind of failure: %s', async (_what, result) => {
    const arranged = await arrangeDeliveries(database, 1, {
      failing_since: daysAgo(6),
      consecutive_failures: 5,
    });
    await arranged.worker(async () => result).attempt(arranged.deliveryIds[0] ?? '', false, 1);
    expect((await arranged.endpoint()).disabled).toBe(true);
  });

  test('is disabled only once by concurrent attempts', async () => {
    const arranged = await arrangeDeliveries(database, 8, {
      failing_since: daysAgo(6),
      consecutive_failures: 1,
    });
    const service = arranged.worker(async () => httpAnswer(503));
    const outcomes = await Promise.all(arranged.deliveryIds.map((id) => service.attempt(id, false, 1)));
    expect(new Set(outcomes.map((outcome) => outcome.kind === 'settled' && outcome.status))).toEqual(
      new Set(['held']),
    );
    expect(await notificationsOf(arranged.organization.organizationId)).toHaveLength(1);
  });

  test('is not disabled just before five days have passed', async () => {
    const arranged = await arrangeDeliveries(database, 1, {
      failing_since: daysAgo(4.99),
      consecutive_failures: 50,
    });
    const service = arranged.worker(async () => httpAnswer(500));
    await expect(service.attempt(arranged.deliveryIds[0] ?? '', false, 1)).resolves.toMatchObject({
      status: 'held',
    });
    expect((await arranged.deliveries())[0]).toMatchObject({ heldFor: 'endpoint_failing' });
    expect((await arranged.endpoint()).disabled).toBe(false);
    expect(await notificationsOf(arranged.organization.organizationId)).toEqual([]);
  });
});

describe('the failing period of an endpoint', () => {
  test('starts with the first failure and ends with a success', async () => {
    const arranged = await arrangeDeliveries(database, 3);
    const [first = '', second = '', third = ''] = arranged.deliveryIds;
    await arranged.worker(async () => httpAnswer(500)).attempt(first, false, 1);
    const { failingSince } = await arranged.endpoint();
    expect(failingSince).not.toBeNull();
    await arranged.worker(async () => httpAnswer(500)).attempt(second, false, 1);
    expect(await arranged.endpoint()).toMatchObject({ failingSince, consecutiveFailures: 2 });
    await arranged.worker(async () => httpAnswer(200)).attempt(third, false, 1);
    expect(await arranged.endpoint()).toMatchObject({ failingSince: null, consecutiveFailures: 0 });
  });

  test('ends when the endpoint is enabled', async () => {
    const arranged = await arrangeDeliveries(database, 1, {
      failing_since: daysAgo(6),
      consecutive_failures: 50,
    });
    await arranged.worker(async () => httpAnswer(500)).attempt(arranged.deliveryIds[0] ?? '', false, 1);
    const response = await app.call(`/webhooks/endpoints/${arranged.endpointId}`, {
      method: 'PATCH',
      token: arranged.organization.token,
      body: { disabled: false },
    });
    expect(response.json()).toMatchObject({ disabled: false, disabled_reason: null });
    expect(await arranged.endpoint()).toMatchObject({ failingSince: null, consecutiveFailures: 0 });
    expect(await arranged.deliveries()).toMatchObject([{ status: 'pending', generation: 2 }]);
    // Another failure starts a new period of five days.
    await arranged.worker(async () => httpAnswer(500)).attempt(arranged.deliveryIds[0] ?? '', false, 2);
    expect((await arranged.endpoint()).disabled).toBe(false);
  });
});

test('a 410 response notifies the owners too', async () => {
  const arranged = await arrangeDeliveries(database, 1);
  await arranged.worker(async () => httpAnswer(410)).attempt(arranged.deliveryIds[0] ?? '', false, 1);
  expect(await notificationsOf(arranged.organization.organizationId)).toMatchObject([
    { params: { reason: 'The receiver responded with 410 Gone.', failingSince: expect.any(String) } },
  ]);
});

test('an attempt that succeeds while the endpoint is being disabled is delivered, not held', async () => {
  const arranged = await arrangeDeliveries(database, 2);
  const { promise, resolve } = Promise.withResolvers<EgressResult>();
  const requested = Promise.withResolvers<void>();
  const [slow = '', respondedGone = ''] = arranged.deliveryIds;
  const attempt = arranged
    .worker(() => {
      requested.resolve();
      return promise;
    })
    .attempt(slow, false, 1);
  await requested.promise;
  await arranged.worker(async () => httpAnswer(410)).attempt(respondedGone, false, 1);
  resolve(httpAnswer(200));
  await expect(attempt).resolves.toMatchObject({ status: 'delivered' });
  expect((await arranged.deliveries()).map(({ status }) => status)).toEqual(['delivered', 'held']);
});

test('disabling through the API holds pending deliveries, and the sweep holds those a crash left behind', async () => {
  const arranged = await arrangeDeliveries(database, 2);
  await app.call(`/webhooks/endpoints/${arranged.endpointId}`, {
    method: 'PATCH',
    token: arranged.organization.token,
    body: { disabled: true },
  });
  expect((await arranged.deliveries()).map(({ status }) => status)).toEqual(['held', 'held']);
  expect(await notificationsOf(arranged.organization.organizationId)).toEqual([]);

  const left = await arrangeDeliveries(database, 1);
  await database.db
    .updateTable('webhook_endpoints')
    .set({ disabled: true })
    .where('id', '=', left.endpointId)
    .execute();
  expect(await holdDeliveriesOfDisabledEndpoints(database)).toBeGreaterThanOrEqual(1);
  expect((await left.deliveries()).map(({ status }) => status)).toEqual(['held']);
});
