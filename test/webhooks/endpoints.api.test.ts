import { beforeAll, describe, expect, test } from '@jest/globals';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { WebhookDeliveryEntity } from '../../domain/webhooks/delivery.entity.ts';
import { WebhookEndpointEntity } from '../../domain/webhooks/endpoint.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import { newId } from '../../platform/ids.ts';
import { deliverWebhookWorkflowId } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

const VALID = { url: 'https://receiver.example.test/hook', events: ['message.received'] };

describe.each(['/webhooks/endpoints', '/webhook-endpoints'])('%s', (path) => {
  const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', suffix = '', body?: unknown) =>
    app.call(`${path}${suffix}`, { method, token: organization.token, body });

  test('serves every endpoint operation', async () => {
    const response = await call('POST', '', { ...VALID, description: 'Mine' });
    expect(response.statusCode).toBe(201);
    const { secret, ...endpoint } = response.json<Record<string, unknown>>();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(endpoint).toEqual({
      object: 'webhook_endpoint',
      id: expect.stringMatching(/^whe_/),
      env_id: organization.productionEnvironmentId,
      url: VALID.url,
      events: VALID.events,
      description: 'Mine',
      inbox_ids: null,
      disabled: false,
      disabled_reason: null,
      failing: false,
      failing_since: null,
      held_deliveries: 0,
      pending_deliveries: 0,
      consecutive_failures: 0,
      last_success_at: null,
      previous_secret_expires_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await call('GET', `/${endpoint.id}`)).json()).toEqual(endpoint);
    const list = (await call('GET')).json<{ data: unknown[] }>();
    expect(list.data).toContainEqual(endpoint);
    const changed = await call('PATCH', `/${endpoint.id}`, { events: [...EVENT_TYPES], description: null });
    expect(changed.json()).toMatchObject({ events: EVENT_TYPES, description: null, url: VALID.url });
    expect((await call('DELETE', `/${endpoint.id}`)).statusCode).toBe(204);
    expectProblem(await call('GET', `/${endpoint.id}`), 'not_found');
    expectProblem(await call('PATCH', `/${endpoint.id}`, { disabled: true }), 'not_found');
  });
});

const create = (body: unknown, token = organization.token) =>
  app.call('/webhooks/endpoints', { method: 'POST', token, body });
const patch = (id: string, body: unknown) =>
  app.call(`/webhooks/endpoints/${id}`, { method: 'PATCH', token: organization.token, body });

test.each([
  'not a url',
  'https://user:secret@receiver.example.test/',
  'https://receiver.example.test/#part',
  `https://receiver.example.test/${'a'.repeat(2048)}`,
])('rejects the URL %j', async (url) => {
  const problem = expectProblem(await create({ ...VALID, url }), 'validation_error');
  expect(problem.errors).toEqual([expect.objectContaining({ path: 'url' })]);
});

test.each([
  ['scheme', 'ftp://receiver.example.test/'],
  ['scheme', 'javascript:alert(1)'],
  ['port', 'https://receiver.example.test:25/'],
  ['address', 'https://127.0.0.1/hook'],
  ['address in another notation', 'https://2130706433/hook'],
  ['IPv6 address', 'https://[::ffff:10.0.0.1]/hook'],
  ['metadata address', 'http://169.254.169.254/latest'],
])('refuses a target with a %s that no delivery may use, on create and PATCH: %s', async (_what, url) => {
  const problem = expectProblem(await create({ ...VALID, url }), 'unprocessable');
  expect(problem.errors).toEqual([expect.objectContaining({ path: 'url' })]);
  const { id } = (await create(VALID)).json<{ id: string }>();
  expectProblem(await patch(id, { url }), 'unprocessable');
  expect((await patch(id, { description: 'kept' })).json()).toMatchObject({ url: VALID.url });
});

test('allows the targets that an operator opens for deliveries', async () => {
  const open = await startTestApp({ config: { EGRESS_ALLOW: '127.0.0.0/8', EGRESS_ALLOW_PORTS: '9000' } });
  try {
    const at = (url: string) =>
      open.call('/webhooks/endpoints', {
        method: 'POST',
        token: organization.token,
        body: { ...VALID, url },
      });
    expect((await at('http://127.0.0.1:9000/hook')).statusCode).toBe(201);
    expectProblem(await at('http://127.0.0.1:9001/hook'), 'unprocessable');
  } finally {
    await open.close();
  }
});

test.each(['25', '465', '587', '6667', '*'])(
  'refuses ports that browsers refuse for HTTP, even if EGRESS_ALLOW_PORTS is %s',
  async (ports) => {
    const open = await startTestApp({ config: { EGRESS_ALLOW_PORTS: ports } });
    try {
      const url = `https://receiver.example.test:${ports === '*' ? '6697' : ports}/hook`;
      const request = { method: 'POST' as const, token: organization.token, body: { ...VALID, url } };
      const problem = expectProblem(await open.call('/webhooks/endpoints', request), 'unprocessable');
      expect(problem.errors).toEqual([expect.objectContaining({ path: 'url' })]);
    } finally {
      await open.close();
    }
  },
);

test('plain HTTP is allowed only in development', async () => {
  const url = 'http://receiver.example.test/hook';
  expect((await create({ ...VALID, url })).statusCode).toBe(201);
  const production = await startTestApp({ config: { NODE_ENV: 'production' } });
  try {
    const request = { method: 'POST' as const, token: organization.token, body: { ...VALID, url } };
    expectProblem(await production.call('/webhooks/endpoints', request), 'unprocessable');
  } finally {
    await production.close();
  }
});

test.each([[[]], [['message.unknown']], [['message.sent', 'message.sent']], ['message.sent'], [null]])(
  'rejects the events %j',
  async (events) => {
    expectProblem(await create({ ...VALID, events }), 'validation_error');
  },
);

test('rejects inboxes outside the scope', async () => {
  const inbox = await createInbox(app.worker, organization);
  const stranger = await createInbox(app.worker, await createOrganization(app.worker));
  expect((await create({ ...VALID, inbox_ids: [inbox.id] })).json()).toMatchObject({ inbox_ids: [inbox.id] });
  expectProblem(await create({ ...VALID, inbox_ids: [inbox.id, stranger.id] }), 'not_found');
  expectProblem(await create({ ...VALID, inbox_ids: [] }), 'validation_error');
});

test('a key bound to an inbox creates endpoints for that inbox only', async () => {
  const inbox = await createInbox(app.worker, organization);
  const { token } = await createKey(app.worker, {
    ...organization,
    environmentId: organization.productionEnvironmentId,
    inboxId: inbox.id,
  });
  const environmentWide = (await create(VALID)).json<{ id: string }>();
  const own = (await create(VALID, token)).json<{ id: string; inbox_ids: string[] }>();
  expect(own.inbox_ids).toEqual([inbox.id]);
  expectProblem(await app.call(`/webhooks/endpoints/${environmentWide.id}`, { token }), 'not_found');
  const list = await app.call('/webhooks/endpoints', { token });
  expect(list.json<{ data: { id: string }[] }>().data.map(({ id }) => id)).toEqual([own.id]);
});

test('the secret is encrypted at rest and never returned again', async () => {
  const { id, secret } = (await create(VALID)).json<{ id: string; secret: string }>();
  await app.worker.systemTransaction(async ({ db }) => {
    const row = await db
      .selectFrom('webhook_endpoints')
      .select(columnsOf(WebhookEndpointEntity))
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    expect(Buffer.from(row.secret).toString('latin1')).not.toContain(secret.slice(6));
  });
  for (const response of [
    await patch(id, {}),
    await app.call(`/webhooks/endpoints/${id}`, { token: organization.token }),
  ])
    expect(response.body).not.toContain(secret);
});

async function holdDeliveries(endpointId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('webhookDelivery'));
  await app.worker.systemTransaction(async ({ db }) => {
    const { organizationId, productionEnvironmentId: environmentId } = organization;
    const eventId = newId('event');
    await db
      .insertInto('events')
      .values({
        id: eventId,
        org_id: organizationId,
        env_id: environmentId,
        inbox_id: null,
        type: 'message.sent',
        data: json({}),
      })
      .execute();
    for (const id of ids)
      await db
        .insertInto('webhook_deliveries')
        .values({
          id,
          org_id: organizationId,
          endpoint_id: endpointId,
          event_id: eventId,
          status: 'held',
          next_attempt_at: null,
          last_status_code: null,
          last_error: null,
          completed_at: null,
        })
        .execute();
  });
  return ids;
}

const deliveries = (endpointId: string) =>
  app.worker.db
    .selectFrom('webhook_deliveries')
    .select(columnsOf(WebhookDeliveryEntity))
    .where('endpoint_id', '=', endpointId)
    .orderBy('id')
    .execute();

test('disabling stores a reason; enabling releases each held delivery once', async () => {
  const { id } = (await create(VALID)).json<{ id: string }>();
  expect((await patch(id, { disabled: true })).json()).toMatchObject({
    disabled: true,
    disabled_reason: 'Disabled through the API.',
  });
  const held = await holdDeliveries(id, 150);
  app.commands.length = 0;
  const enabled = await Promise.all([patch(id, { disabled: false }), patch(id, { disabled: false })]);
  for (const response of enabled)
    expect(response.json()).toMatchObject({ disabled: false, disabled_reason: null });
  for (const delivery of await deliveries(id))
    expect(delivery).toMatchObject({ status: 'pending', generation: 2, nextAttemptAt: expect.any(Date) });
  const started = app.commands.map(({ start }) => start?.workflowId).sort();
  expect(started).toEqual(held.map((deliveryId) => deliverWebhookWorkflowId(deliveryId, 2)).sort());
});

test('deleting cancels pending and held deliveries', async () => {
  const { id } = (await create(VALID)).json<{ id: string }>();
  await holdDeliveries(id, 3);
  await app.call(`/webhooks/endpoints/${id}`, { method: 'DELETE', token: organization.token });
  for (const delivery of await deliveries(id))
    expect(delivery).toMatchObject({ status: 'canceled', completedAt: expect.any(Date) });
});
