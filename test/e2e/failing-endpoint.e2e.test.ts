import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import pg from 'pg';
import { RELEASE_BATCH_SIZE } from '../../domain/webhooks/release-held-deliveries.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { newId } from '../../platform/ids.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(300_000);
/** Temporal notices a dead worker after the timeout of 90 s. */
const TIMEOUT_MS = 200_000;

let service: IsolatedService;
let call: Call;
let database: pg.Client;
let temporal: Client;

beforeAll(async () => {
  service = await startIsolatedService({});
  call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  database = new pg.Client({ connectionString: service.ownerDatabaseUrl });
  await database.connect();
  temporal = await service.connectToTemporal();
});
afterAll(async () => {
  await temporal?.connection.close();
  await database?.end();
  await service?.stop();
});

/** A receiver of an inbox's events. Its status code can change. */
async function arrangeReceiver(inboxId: string, status: number) {
  const receiver = new WebhookReceiver();
  const url = await receiver.start();
  const answer = (code: number) =>
    receiver.answerWith((_request, response) => response.writeHead(code).end());
  answer(status);
  const endpoint = await call('POST', '/webhooks/endpoints', {
    url,
    events: ['message.rejected'],
    inbox_ids: [inboxId],
  });
  expect(endpoint.status).toBe(201);
  return { receiver, answer, endpointId: String(endpoint.body.id) };
}

const eventIds = ({ received }: WebhookReceiver) => received.map(({ headers }) => headers['webhook-id']);

async function openRuns(endpointId: string): Promise<string[]> {
  const types: string[] = [];
  const query = `ExecutionStatus = 'Running' and ResourceId = '${endpointId}'`;
  const { workflow } = temporal;
  for await (const run of workflow.list({ query })) types.push(run.type);
  return types;
}

test('a dead endpoint keeps one open run, a healthy one beside it gets its events, and the backlog follows', async () => {
  const inbox = (await call('POST', '/inboxes', {})).body;
  await call('POST', '/lists/send/block', { entry: 'blocked.example', inbox_id: inbox.id });
  const dead = await arrangeReceiver(inbox.id, 503);
  const healthy = await arrangeReceiver(inbox.id, 204);
  const EVENTS = 40;
  for (let index = 0; index < EVENTS; index += 1) {
    // Refused, which emits an event immediately.
    const { status } = await call('POST', `/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'ada@blocked.example' }],
      subject: `Message ${index}`,
      text_body: 'No.',
    });
    expect(status).toBe(422);
  }
  await eventually(() => expect(new Set(eventIds(healthy.receiver)).size).toBe(EVENTS), 60_000);
  const path = `/webhooks/endpoints/${dead.endpointId}`;
  await eventually(async () => {
    expect((await call('GET', path)).body).toMatchObject({
      failing: true,
      failing_since: expect.any(String),
      held_deliveries: EVENTS,
    });
  }, 60_000);
  await eventually(async () => expect(await openRuns(dead.endpointId)).toEqual(['probeEndpoint']), 60_000);
  expect((await call('GET', `/webhooks/endpoints/${healthy.endpointId}`)).body).toMatchObject({
    failing: false,
    held_deliveries: 0,
  });

  const held = await call('GET', `${path}/deliveries?status=held&limit=1`);
  expect(held.body.data).toMatchObject([{ held_for: 'endpoint_failing' }]);
  const [newest] = held.body.data;
  const before = dead.receiver.received.length;
  dead.answer(200);
  expect((await call('POST', `/webhooks/deliveries/${newest?.id}/retry`)).status).toBe(202);
  await eventually(async () => {
    expect((await call('GET', path)).body).toMatchObject({ failing: false, held_deliveries: 0 });
  }, 60_000);
  await eventually(async () => {
    const { rows } = await database.query(
      'select status, count(*)::int from webhook_deliveries where endpoint_id = $1 group by status',
      [dead.endpointId],
    );
    expect(rows).toEqual([{ status: 'delivered', count: EVENTS }]);
  }, 60_000);
  const afterwards = eventIds(dead.receiver).slice(before);
  expect(afterwards[0]).toBe(newest?.event_id);
  expect(new Set(afterwards).size).toBe(EVENTS);
  await eventually(async () => expect(await openRuns(dead.endpointId)).toEqual([]), 60_000);
  await dead.receiver.stop();
  await healthy.receiver.stop();
});

test('a worker killed between two batches of a release loses no delivery', async () => {
  const inbox = (await call('POST', '/inboxes', {})).body;
  const { receiver, endpointId } = await arrangeReceiver(inbox.id, 204);
  const BACKLOG = 2 * RELEASE_BATCH_SIZE + 50;
  const ids = await insertBacklog(endpointId, inbox.id, BACKLOG);
  // No run exists: the reconciler starts the probe.
  await temporal.schedule.getHandle(RECONCILE_SCHEDULE_ID).trigger();
  await eventually(() => expect(receiver.received.length).toBeGreaterThan(20), TIMEOUT_MS);
  await service.kill('workers');
  const { rows: left } = await database.query(
    `select id from webhook_deliveries where endpoint_id = $1 and status = 'held'`,
    [endpointId],
  );
  expect(left.length).toBeGreaterThan(0);
  await service.start('workers');
  await eventually(async () => {
    const { rows } = await database.query(
      'select status, count(*)::int from webhook_deliveries where endpoint_id = $1 group by status',
      [endpointId],
    );
    expect(rows).toEqual([{ status: 'delivered', count: BACKLOG }]);
  }, TIMEOUT_MS);
  expect(new Set(eventIds(receiver))).toEqual(new Set(ids));
  const { rows: endpoints } = await database.query(
    'select holding_since, consecutive_failures from webhook_endpoints where id = $1',
    [endpointId],
  );
  expect(endpoints).toEqual([{ holding_since: null, consecutive_failures: 0 }]);
  await receiver.stop();
});

/** The endpoint has been failing for three minutes. @returns the ids of the held events. */
async function insertBacklog(endpointId: string, inboxId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('event'));
  const data = buildSampleData('message.rejected', { inboxId, time: new Date() });
  await database.query(
    `insert into events (id, org_id, env_id, inbox_id, type, data, test, created_at)
     select event, w.org_id, w.env_id, $3::text, 'message.rejected', $4::jsonb, false, now()
     from webhook_endpoints w, unnest($1::text[]) backlog (event) where w.id = $2`,
    [ids, endpointId, inboxId, JSON.stringify(data)],
  );
  await database.query(
    `insert into webhook_deliveries (id, org_id, endpoint_id, event_id, status, held_for, created_at)
     select delivery, w.org_id, w.id, event, 'held', 'endpoint_failing', now()
     from webhook_endpoints w, unnest($1::text[], $2::text[]) backlog (delivery, event) where w.id = $3`,
    [ids.map(() => newId('webhookDelivery')), ids, endpointId],
  );
  await database.query(
    `update webhook_endpoints set consecutive_failures = 10, failing_since = now() - interval '3 minutes',
       holding_since = now() - interval '3 minutes', probe_generation = 1 where id = $1`,
    [endpointId],
  );
  return ids;
}
