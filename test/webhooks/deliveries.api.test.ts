import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql, type Updateable } from 'kysely';
import { Webhook } from 'standardwebhooks';
import { EVENT_TYPES, type EventType, isOrganizationWide } from '../../domain/events/event-types.ts';
import { purgeEvents } from '../../domain/events/purge-events.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import {
  type BulkJobRunner,
  createBulkJobRunner,
  overdueBulkJobs,
} from '../../domain/webhooks/bulk-job-runner.ts';
import type { DeliveryStatus } from '../../domain/webhooks/delivery.entity.ts';
import { WebhookEndpointEntity } from '../../domain/webhooks/endpoint.entity.ts';
import { openSecrets } from '../../domain/webhooks/endpoint-secret.ts';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import type { Tables } from '../../platform/database/tables.ts';
import { lowestIdAt, newId } from '../../platform/ids.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { signWebhook } from '../../platform/webhook-signature.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows, query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox, type TestApp } from '../support/test-app.ts';

const app = useTestApp();
let jobs: BulkJobRunner;
/** Commands of bulk jobs for Temporal. */
let jobCommands: OutboxCommand[];
beforeAll(async () => {
  const { outbox, commands } = recordingOutbox();
  jobCommands = commands;
  jobs = createBulkJobRunner({
    notifications: createNotificationService({ outbox }),
    database: app.worker,
    outbox,
  });
});

interface Arranged {
  organization: TestOrganization;
  token: string;
  endpointId: string;
  post(path: string, body?: unknown): ReturnType<TestApp['call']>;
  get(path: string): ReturnType<TestApp['call']>;
}

async function arrange(events: EventType[] = ['message.sent', 'message.delivered']): Promise<Arranged> {
  const organization = await createOrganization(app.worker);
  const { token } = organization;
  const post = (path: string, body?: unknown) => app.call(path, { method: 'POST', token, body });
  const created = await post('/webhooks/endpoints', { url: 'https://receiver.example.test/hook', events });
  return {
    organization,
    token,
    endpointId: created.json<{ id: string }>().id,
    post,
    get: (path) => app.call(path, { token }),
  };
}

const events = createWebhookEvents({ outbox: recordingOutbox().outbox });

async function record({ organization }: Arranged, type: EventType, inboxId = newId('inbox')): Promise<void> {
  await app.worker.systemTransaction((transaction) =>
    events.record(transaction, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId: isOrganizationWide(type) ? null : inboxId,
      type,
      data: buildSampleData(type, { inboxId, time: new Date() }),
    }),
  );
}

interface Summary {
  id: string;
  event_id: string;
  event_type: string;
  status: string;
  attempt_count: number;
  test: boolean;
}

async function deliveriesOf({ get, endpointId }: Arranged, query = ''): Promise<Summary[]> {
  return (await get(`/webhooks/endpoints/${endpointId}/deliveries${query}`)).json<{ data: Summary[] }>().data;
}

async function settle(id: string, status: DeliveryStatus): Promise<void> {
  await app.worker.systemTransaction(async ({ db }) => {
    const settled = status !== 'pending' && status !== 'held';
    const delivery = await db
      .updateTable('webhook_deliveries')
      .set({
        status,
        attempts: 1,
        next_attempt_at: null,
        last_status_code: 500,
        last_error: 'HTTP 500',
        completed_at: settled ? new Date(Date.now() - 1_000) : null,
      })
      .where('id', '=', id)
      .returning('org_id')
      .executeTakeFirstOrThrow();
    await db
      .insertInto('webhook_delivery_attempts')
      .values({
        delivery_id: id,
        number: 1,
        org_id: delivery.org_id,
        started_at: new Date(),
        finished_at: new Date(),
        duration_ms: 12,
        status_code: 500,
        response_body: 'down for maintenance',
        response_headers: json({ 'content-type': 'text/plain' }),
        error: 'HTTP 500',
      })
      .execute();
  });
}

const disable = (endpointId: string, disabled: boolean) =>
  app.worker.db
    .updateTable('webhook_endpoints')
    .set({ disabled, disabled_reason: 'The receiver responded with 410 Gone.' })
    .where('id', '=', endpointId)
    .execute();

const commandsAbout = (id: string) => app.commands.filter((command) => JSON.stringify(command).includes(id));

describe('deliveries', () => {
  test('are listed by status and type, with pagination, under both paths', async () => {
    const arranged = await arrange();
    const { get, endpointId } = arranged;
    for (const type of ['message.sent', 'message.delivered', 'message.sent'] as const)
      await record(arranged, type);
    const [newest, middle, oldest] = await deliveriesOf(arranged);
    expect(newest).toMatchObject({
      event_type: 'message.sent',
      status: 'pending',
      attempt_count: 0,
      test: false,
    });
    await settle(middle?.id ?? '', 'exhausted');
    expect(await deliveriesOf(arranged, '?status=exhausted')).toMatchObject([
      { id: middle?.id, attempt_count: 1 },
    ]);
    expect(await deliveriesOf(arranged, '?event_type=message.sent')).toMatchObject([newest, oldest]);
    expect(await deliveriesOf(arranged, '?status=delivered')).toEqual([]);
    const path = `/webhook-endpoints/${endpointId}/deliveries?limit=2&order=asc`;
    type Page = { data: Summary[]; next_cursor: string | null };
    const first = (await get(path)).json<Page>();
    const second = (await get(`${path}&cursor=${first.next_cursor}`)).json<Page>();
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual([oldest?.id, middle?.id, newest?.id]);
    expect(second.next_cursor).toBeNull();
    expectProblem(await get(`/webhooks/endpoints/${endpointId}/deliveries?status=lost`), 'validation_error');
  });

  test('can be fetched with their attempts', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    const [delivery] = await deliveriesOf(arranged);
    await settle(delivery?.id ?? '', 'exhausted');
    const response = await arranged.get(`/webhooks/deliveries/${delivery?.id}`);
    expect(response.json()).toMatchObject({
      id: delivery?.id,
      event_id: delivery?.event_id,
      status: 'exhausted',
      last_status_code: 500,
      request: {
        method: 'POST',
        url: 'https://receiver.example.test/hook',
        headers: {
          'content-type': 'application/json',
          'user-agent': expect.stringContaining('webhooks'),
          'webhook-id': delivery?.event_id,
        },
      },
      attempts: [
        {
          number: 1,
          started_at: expect.any(String),
          finished_at: expect.any(String),
          duration_ms: 12,
          status_code: 500,
          response_body: 'down for maintenance',
          response_headers: { 'content-type': 'text/plain' },
          error: 'HTTP 500',
        },
      ],
    });
  });

  test('are visible to a key bound to an inbox only for endpoints of that inbox', async () => {
    const arranged = await arrange();
    const { organization } = arranged;
    await record(arranged, 'message.sent');
    const [delivery] = await deliveriesOf(arranged);
    const inbox = await createInbox(app.worker, organization);
    const environmentId = organization.productionEnvironmentId;
    const { token } = await createKey(app.worker, { ...organization, environmentId, inboxId: inbox.id });
    expectProblem(await app.call(`/webhooks/deliveries/${delivery?.id}`, { token }), 'not_found');
    expectProblem(
      await app.call(`/webhooks/deliveries/${delivery?.id}/retry`, { method: 'POST', token }),
      'not_found',
    );
    expect((await deliveriesOf(arranged))[0]).toMatchObject({ status: 'pending' });
  });
});

describe('retry', () => {
  test('wakes a pending delivery', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    const [delivery] = await deliveriesOf(arranged);
    const id = delivery?.id ?? '';
    const response = await arranged.post(`/webhooks/deliveries/${id}/retry`);
    expect(response.statusCode).toBe(202);
    expect(commandsAbout(id)).toMatchObject([
      {
        start: { workflowId: `webhook/${id}` },
        signal: { workflowId: `webhook/${id}`, signalName: 'retryNow' },
      },
    ]);
  });

  test.each(['exhausted', 'delivered', 'canceled', 'blocked'] as const)(
    'of a delivery that is %s starts one new generation with the same event, even for concurrent calls',
    async (status) => {
      const arranged = await arrange();
      await record(arranged, 'message.sent');
      const [delivery] = await deliveriesOf(arranged);
      const id = delivery?.id ?? '';
      await settle(id, status);
      const answers = await Promise.all(
        Array.from({ length: 3 }, () => arranged.post(`/webhooks/deliveries/${id}/retry`)),
      );
      for (const answer of answers)
        expect(answer.json()).toMatchObject({
          status: 'pending',
          event_id: delivery?.event_id,
          completed_at: null,
        });
      const starts = commandsAbout(id).filter(({ signal }) => !signal);
      expect(starts).toMatchObject([
        {
          start: {
            workflowId: `webhook/${id}/2`,
            priority: { priorityKey: 3 },
            searchAttributes: { ResourceId: arranged.endpointId, RelatedId: delivery?.event_id },
          },
        },
      ]);
    },
  );

  test('to a disabled endpoint is rejected with a fix', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    const [delivery] = await deliveriesOf(arranged);
    await settle(delivery?.id ?? '', 'held');
    await disable(arranged.endpointId, true);
    const problem = expectProblem(
      await arranged.post(`/webhooks/deliveries/${delivery?.id}/retry`),
      'conflict',
    );
    expect(problem.fix).toContain('"disabled": false');
    await app.call(`/webhooks/endpoints/${arranged.endpointId}`, { method: 'DELETE', token: arranged.token });
    expectProblem(await arranged.post(`/webhooks/deliveries/${delivery?.id}/retry`), 'conflict');
  });
});

describe('cancel', () => {
  test('cancels pending and held deliveries only', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    const [delivery] = await deliveriesOf(arranged);
    const id = delivery?.id ?? '';
    for (let time = 0; time < 2; time += 1) {
      const response = await arranged.post(`/webhooks/deliveries/${id}/cancel`);
      expect([response.statusCode, response.json()]).toMatchObject([200, { status: 'canceled' }]);
    }
    expect(commandsAbout(id)).toMatchObject([
      { signal: { workflowId: `webhook/${id}`, signalName: 'cancel' } },
    ]);
    await settle(
      newDelivery(await arranged.post(`/webhooks/endpoints/${arranged.endpointId}/test`, {})),
      'delivered',
    );
    const [delivered] = await deliveriesOf(arranged);
    expectProblem(await arranged.post(`/webhooks/deliveries/${delivered?.id}/cancel`), 'conflict');
  });
});

const newDelivery = (response: { json<T>(): T }) => response.json<{ id: string }>().id;

test('an operation with only optional fields accepts a missing body', async () => {
  const { post, endpointId } = await arrange();
  expect((await post(`/webhooks/endpoints/${endpointId}/test`)).statusCode).toBe(202);
  expect((await post(`/webhooks/endpoints/${endpointId}/rotate-secret`)).statusCode).toBe(200);
  const optional = app.contract.operations.filter(
    ({ operationId, requestBody }) =>
      requestBody?.required === false && operationId.startsWith('webhookEndpoints'),
  );
  expect(optional.map(({ operationId }) => operationId.replace('Alias', ''))).toEqual(
    ['test', 'rotateSecret', 'test', 'rotateSecret'].map((name) => `webhookEndpoints.${name}`),
  );
});

describe('a test event', () => {
  test.each(EVENT_TYPES)(
    'of type %s is sent to this endpoint only and is not in the feed',
    async (event_type) => {
      const arranged = await arrange();
      await arranged.post('/webhooks/endpoints', {
        url: 'https://other.example.test',
        events: [...EVENT_TYPES],
      });
      const response = await arranged.post(`/webhooks/endpoints/${arranged.endpointId}/test`, { event_type });
      expect(response.statusCode).toBe(202);
      const delivery = response.json<Summary>();
      expect(delivery).toMatchObject({ event_type, test: true, status: 'pending' });
      expect(commandsAbout(delivery.event_id)).toMatchObject([
        { start: { workflowId: `webhook/${delivery.id}` } },
      ]);
      expect((await arranged.get(`/events/${delivery.event_id}`)).json()).toMatchObject({ type: event_type });
      expect((await arranged.get('/events')).json()).toMatchObject({ data: [] });
    },
  );

  test('to a disabled endpoint is rejected', async () => {
    const arranged = await arrange();
    await disable(arranged.endpointId, true);
    expectProblem(await arranged.post(`/webhooks/endpoints/${arranged.endpointId}/test`, {}), 'conflict');
    expect(await deliveriesOf(arranged)).toEqual([]);
  });
});

describe('a rotated secret', () => {
  const rotate = ({ post, endpointId }: Arranged, body: unknown) =>
    post(`/webhooks/endpoints/${endpointId}/rotate-secret`, body);
  const endpointOf = ({ endpointId }: Arranged) =>
    app.worker.db
      .selectFrom('webhook_endpoints')
      .select(columnsOf(WebhookEndpointEntity))
      .where('id', '=', endpointId)
      .executeTakeFirstOrThrow();

  test('overlaps with the old one: both verify, then only the new one', async () => {
    const arranged = await arrange();
    const secretBox = createSecretBox(app.config.ENCRYPTION_KEY);
    const old = openSecrets(await endpointOf(arranged), secretBox).secret;
    const response = await rotate(arranged, { overlap_seconds: 3_600 });
    const shown = (await arranged.get(`/webhooks/endpoints/${arranged.endpointId}`)).json<{
      previous_secret_expires_at: string;
    }>();
    expect(Date.parse(shown.previous_secret_expires_at) - Date.now()).toBeGreaterThan(3_500_000);
    expect(response.statusCode).toBe(200);
    const { secret } = response.json<{ secret: string }>();
    expect(secret).toMatch(/^whsec_/);
    expect(secret).not.toBe(old);
    const endpoint = await endpointOf(arranged);
    expect(Buffer.from(endpoint.previousSecret ?? '').toString('latin1')).not.toContain(old.slice(6));
    const body = '{"id":"evt_1"}';
    const timestampSeconds = Math.floor(Date.now() / 1000);
    const headers = signWebhook({
      ...openSecrets(endpoint, secretBox),
      eventId: 'evt_1',
      timestampSeconds,
      body,
    });
    for (const key of [secret, old]) expect(new Webhook(key).verify(body, headers)).toEqual({ id: 'evt_1' });
    const hmac = (key: string) =>
      createHmac('sha256', key).update(`${timestampSeconds}.${body}`).digest('hex');
    expect(headers).toMatchObject({
      'x-service-signature': hmac(secret),
      'x-service-signature-previous': hmac(old),
    });
    const expiredAt = { ...endpoint, previousSecretExpiresAt: new Date(Date.now() - 1) };
    expect(openSecrets(expiredAt, secretBox)).toEqual({ secret });
  });

  test('without an overlap replaces the old one immediately and drops the one before', async () => {
    const arranged = await arrange();
    const secretBox = createSecretBox(app.config.ENCRYPTION_KEY);
    const first = (await rotate(arranged, { overlap_seconds: 60 })).json<{ secret: string }>().secret;
    const second = (await rotate(arranged, {})).json<{ secret: string }>().secret;
    expect(openSecrets(await endpointOf(arranged), secretBox)).toEqual({
      secret: second,
      previousSecret: first,
    });
    const third = (await rotate(arranged, { overlap_seconds: 0 })).json<{ secret: string }>().secret;
    expect(openSecrets(await endpointOf(arranged), secretBox)).toEqual({ secret: third });
  });

  test.each([-1, 604_801, 1.5, '60'])('rejects an overlap of %j', async (overlap_seconds) => {
    expectProblem(await rotate(await arrange(), { overlap_seconds }), 'validation_error');
  });
});

describe('replay', () => {
  const SINCE = '2026-01-01T00:00:00.000Z';
  const replay = ({ post, endpointId }: Arranged, body: object = {}) =>
    post(`/webhooks/endpoints/${endpointId}/replay`, { since: SINCE, ...body });
  interface Job {
    id: string;
    status: string;
    deliveries: number;
    expedited: number;
  }
  async function run(arranged: Arranged, body: object = {}): Promise<Job> {
    const response = await replay(arranged, body);
    expect(response.statusCode).toBe(202);
    const { id } = response.json<Job>();
    expect(commandsAbout(id)).toMatchObject([
      { start: { workflowId: `webhook-job/${id}`, searchAttributes: { ResourceId: arranged.endpointId } } },
    ]);
    await jobs.run(id, () => undefined);
    return (await arranged.get(`/webhooks/jobs/${id}`)).json<Job>();
  }

  test('restarts settled deliveries, leaves pending ones alone and creates missing ones', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    await record(arranged, 'message.sent');
    await record(arranged, 'message.bounced');
    await record(arranged, 'domain.verified');
    const [pending, delivered] = await deliveriesOf(arranged);
    await settle(delivered?.id ?? '', 'delivered');
    await app.call(`/webhooks/endpoints/${arranged.endpointId}`, {
      method: 'PATCH',
      token: arranged.token,
      body: { events: ['message.sent', 'message.bounced', 'domain.verified'] },
    });
    expect(await run(arranged)).toMatchObject({
      status: 'completed',
      deliveries: 3,
      made: 3,
      expedited: 0,
      skipped: 1,
      skipped_for: { due: 1 },
    });
    const now = await deliveriesOf(arranged);
    expect(now.map(({ event_type, status }) => [event_type, status])).toEqual(
      expect.arrayContaining([
        ['message.bounced', 'pending'],
        ['domain.verified', 'pending'],
        ['message.sent', 'pending'],
      ]),
    );
    expect(now).toHaveLength(4);
    const startsOf = (id = '') =>
      jobCommands.filter(({ start }) => start?.workflowId.startsWith(`webhook/${id}`));
    expect(startsOf(pending?.id)).toEqual([]);
    expect(startsOf(delivered?.id)).toMatchObject([{ start: { workflowId: `webhook/${delivered?.id}/2` } }]);
    // Live events go before them, and a person's retry, too.
    const priorities = now.flatMap(({ id }) => startsOf(id).map(({ start }) => start?.priority.priorityKey));
    expect(priorities).toEqual([5, 5, 5]);
    // A second replay finds all deliveries pending.
    expect(await run(arranged)).toMatchObject({
      status: 'completed',
      deliveries: 0,
      skipped_for: { due: 4 },
    });
  });

  test('reports its progress while it waits for Temporal, for its own organization alone', async () => {
    const arranged = await arrange();
    // One more than a batch.
    for (let count = 0; count < 201; count += 1) await record(arranged, 'message.sent');
    const { id } = (await replay(arranged)).json<Job>();
    const { outbox } = recordingOutbox();
    const drained: unknown[] = [];
    const slow = createBulkJobRunner({
      notifications: createNotificationService({ outbox }),
      database: app.worker,
      progressIntervalMs: 20,
      outbox: {
        ...outbox,
        async drain(organizationId) {
          drained.push(organizationId);
          await pause(500);
        },
      },
    });
    let reports = 0;
    await slow.run(id, () => {
      reports += 1;
    });
    expect(drained).toEqual([arranged.organization.organizationId]);
    // Two are those of the batches.
    expect(reports).toBeGreaterThan(3);
    const canceled = (await replay(arranged)).json<Job>();
    const cancel = () => {
      reports += 1;
      if (reports > 3) throw new Error('canceled');
    };
    reports = 0;
    await expect(slow.run(canceled.id, cancel)).rejects.toThrow('canceled');
  });

  /** Deliveries that failed once: one for each state given. */
  async function arrangeFailed(
    arranged: Arranged,
    states: Updateable<Tables['webhook_deliveries']>[],
  ): Promise<string[]> {
    for (const _ of states) await record(arranged, 'message.sent');
    const ids = (await deliveriesOf(arranged)).map(({ id }) => id).sort();
    for (const [index, state] of states.entries())
      await app.worker.db
        .updateTable('webhook_deliveries')
        .set({
          attempts: 1,
          last_error: 'HTTP 500',
          next_attempt_at: new Date(Date.now() + 3_600_000),
          ...state,
        })
        .where('id', '=', ids[index] ?? '')
        .execute();
    return ids;
  }

  test('does not send again what an attempt settled after the job began', async () => {
    const arranged = await arrange();
    const [id] = await arrangeFailed(arranged, [{}]);
    const since = new Date(Date.now() - 60_000).toISOString();
    const job = (await arranged.post(`/webhooks/endpoints/${arranged.endpointId}/replay`, { since })).json<{
      id: string;
    }>();
    await app.worker.db
      .updateTable('webhook_deliveries')
      .set({ status: 'delivered', attempts: 2, next_attempt_at: null, completed_at: new Date() })
      .where('id', '=', id ?? '')
      .execute();
    await jobs.run(job.id, () => undefined);
    expect((await arranged.get(`/webhooks/jobs/${job.id}`)).json()).toMatchObject({
      deliveries: 0,
      skipped_for: { in_flight: 1 },
    });
    expect((await deliveriesOf(arranged)).map(({ status }) => status)).toEqual(['delivered']);
  });

  test.each([{}, { only_failed: true }])(
    'with %j makes those due that wait, by a signal alone, and skips what is in flight or held',
    async (body) => {
      const arranged = await arrange();
      const [waiting, inFlight, failing, suspended, limited] = await arrangeFailed(arranged, [
        {},
        {},
        { status: 'held', held_for: 'endpoint_failing', next_attempt_at: null },
        { status: 'held', held_for: 'suspension', next_attempt_at: null },
        { status: 'held', held_for: 'usage_limit', next_attempt_at: null },
      ]);
      await query(
        app.worker,
        sql`insert into webhook_slots (endpoint_id, slot, org_id, delivery_id, leased_until)
        values (${arranged.endpointId}, 0, ${arranged.organization.organizationId}, ${inFlight}, now() + interval '1 minute')
        returning slot`,
      );
      expect(await run(arranged, body)).toMatchObject({
        status: 'completed',
        deliveries: 1,
        made: 0,
        expedited: 1,
        skipped: 4,
        skipped_for: { in_flight: 1, endpoint_failing: 1, suspension: 1, usage_limit: 1 },
      });
      const about = (id = '') => jobCommands.filter((command) => JSON.stringify(command).includes(id));
      expect(about(waiting)).toEqual([
        { signal: { workflowId: `webhook/${waiting}`, signalName: 'retryNow', args: [{ isDue: true }] } },
      ]);
      for (const id of [inFlight, failing, suspended, limited]) expect(about(id)).toEqual([]);
      const rows = await query<{ id: string; isDue: boolean; generation: number }>(
        app.worker,
        sql`select id, next_attempt_at <= now() as "isDue", generation from webhook_deliveries
        where id = any(${[waiting ?? '', inFlight ?? '']}) order by id`,
      );
      expect(rows).toEqual([
        { id: waiting, isDue: true, generation: 1 },
        { id: inFlight, isDue: false, generation: 1 },
      ]);
      // What was expedited is about to be attempted.
      expect(await run(arranged, body)).toMatchObject({ expedited: 0, skipped_for: { due: 1 } });
    },
  );

  test('leaves those that wait to the probe while the endpoint is failing, and never announces a deleted message', async () => {
    const arranged = await arrange();
    const [, canceled] = await arrangeFailed(arranged, [
      {},
      { status: 'canceled', last_error: 'purged', next_attempt_at: null, completed_at: new Date(0) },
    ]);
    await query(
      app.worker,
      sql`update events set redacted = true, type = 'message.received'
      where id = (select event_id from webhook_deliveries where id = ${canceled}) returning id`,
    );
    await record(arranged, 'message.received');
    await query(
      app.worker,
      sql`update events set redacted = true where type = 'message.received' and org_id = ${arranged.organization.organizationId}`,
    );
    await query(
      app.worker,
      sql`update webhook_endpoints set holding_since = now(), events = '{message.sent,message.received}' where id = ${arranged.endpointId}`,
    );
    expect(await run(arranged)).toMatchObject({
      deliveries: 0,
      skipped: 3,
      skipped_for: { endpoint_failing: 1, purged: 2 },
    });
    expect(await run(arranged, { only_failed: true })).toMatchObject({
      deliveries: 0,
      skipped_for: { endpoint_failing: 1, purged: 1 },
    });
  });

  test('of failed deliveries goes through more than one batch', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    await query(
      app.worker,
      sql`insert into webhook_deliveries (id, org_id, endpoint_id, event_id, status, attempts, next_attempt_at, created_at)
      select 'whd_' || lpad(number::text, 26, '0'), d.org_id, d.endpoint_id, d.event_id, 'pending', 1,
        now() + interval '1 hour', now()
      from webhook_deliveries d, generate_series(1, 450) number where d.endpoint_id = ${arranged.endpointId} returning id`,
    );
    expect(await run(arranged, { only_failed: true })).toMatchObject({ expedited: 450, skipped: 0 });
  });

  test('can be limited to a time range, to event types and to failed deliveries', async () => {
    const arranged = await arrange();
    for (const type of ['message.sent', 'message.delivered', 'message.sent'] as const)
      await record(arranged, type);
    const [third, second, first] = await deliveriesOf(arranged);
    for (const [delivery, status] of [
      [first, 'exhausted'],
      [second, 'delivered'],
      [third, 'canceled'],
    ] as const)
      await settle(delivery?.id ?? '', status);
    expect(await run(arranged, { until: '2026-01-02T00:00:00.000Z' })).toMatchObject({ deliveries: 0 });
    expect(await run(arranged, { event_types: ['message.delivered'] })).toMatchObject({ deliveries: 1 });
    expect(await run(arranged, { only_failed: true })).toMatchObject({ deliveries: 2 });
    expect(await run(arranged, { only_failed: true })).toMatchObject({ deliveries: 0 });
  });

  test('respects the inboxes of the endpoint and skips test events', async () => {
    const arranged = await arrange();
    const inbox = await createInbox(app.worker, arranged.organization);
    await record(arranged, 'message.sent');
    await record(arranged, 'message.sent', inbox.id);
    await arranged.post(`/webhooks/endpoints/${arranged.endpointId}/test`, {});
    const other = await arranged.post('/webhooks/endpoints', {
      url: 'https://late.example.test',
      events: ['message.sent'],
      inbox_ids: [inbox.id],
    });
    const late = { ...arranged, endpointId: other.json<{ id: string }>().id };
    expect(await run(late)).toMatchObject({ status: 'completed', deliveries: 1 });
    expect(await deliveriesOf(late)).toMatchObject([{ test: false, status: 'pending' }]);
  });

  test('of more than one batch restarts each delivery once, even if interrupted and run concurrently', async () => {
    const arranged = await arrange();
    const count = 450;
    await app.worker.systemTransaction(async ({ db }) => {
      for (let index = 0; index < count; index += 1)
        await db
          .insertInto('events')
          .values({
            id: newId('event'),
            org_id: arranged.organization.organizationId,
            env_id: arranged.organization.productionEnvironmentId,
            inbox_id: 'inb_1',
            type: 'message.sent',
            data: json({}),
          })
          .execute();
    });
    const { id } = (await replay(arranged)).json<Job>();
    await expect(
      jobs.run(id, () => {
        throw new Error('the worker dies');
      }),
    ).rejects.toThrow('dies');
    await Promise.all([jobs.run(id, () => undefined), jobs.run(id, () => undefined)]);
    expect((await arranged.get(`/webhooks/jobs/${id}`)).json()).toMatchObject({
      status: 'completed',
      deliveries: count,
    });
    const [row] = await query<{ count: number; distinct: number }>(
      app.worker,
      sql`select count(*)::int as count, count(distinct event_id)::int as "distinct" from webhook_deliveries where endpoint_id = ${arranged.endpointId}`,
    );
    expect(row).toEqual({ count, distinct: count });
  });

  test('to a disabled endpoint is rejected; disabling the endpoint stops a running replay', async () => {
    const arranged = await arrange();
    await record(arranged, 'message.sent');
    await settle((await deliveriesOf(arranged))[0]?.id ?? '', 'exhausted');
    await disable(arranged.endpointId, true);
    expect(expectProblem(await replay(arranged), 'conflict').fix).toContain('Enable it');
    await disable(arranged.endpointId, false);
    const { id } = (await replay(arranged)).json<Job>();
    await disable(arranged.endpointId, true);
    await jobs.run(id, () => undefined);
    expect((await arranged.get(`/webhooks/jobs/${id}`)).json()).toMatchObject({
      status: 'stopped',
      detail: 'The endpoint was disabled.',
      deliveries: 0,
    });
  });

  test('is limited to one running job per endpoint', async () => {
    const arranged = await arrange();
    const answers = await Promise.all([replay(arranged), replay(arranged)]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([202, 409]);
    for (const answer of answers) if (answer.statusCode === 409) expectProblem(answer, 'conflict');
  });

  test.each([
    {},
    { since: 'yesterday' },
    { since: SINCE, until: SINCE },
    { since: SINCE, event_types: [] },
    { since: SINCE, event_types: ['message.unknown'] },
    { since: SINCE, everything: true },
  ])('rejects %j', async (body) => {
    const { post, endpointId } = await arrange();
    expectProblem(await post(`/webhooks/endpoints/${endpointId}/replay`, body), 'validation_error');
  });

  test('without a run is started again; one that an operator ended is stopped', async () => {
    const arranged = await arrange();
    const { id } = (await replay(arranged)).json<Job>();
    await app.worker.db
      .updateTable('webhook_bulk_jobs')
      .set({ created_at: new Date(Date.now() - 180_000) })
      .where('id', '=', id)
      .execute();
    const runs = await overdueBulkJobs(app.worker).take(1_000);
    const own = runs.find(({ start }) => start.workflowId === `webhook-job/${id}`);
    if (typeof own?.whenStopped !== 'function') throw new Error('not taken');
    await own.whenStopped();
    expect((await arranged.get(`/webhooks/jobs/${id}`)).json()).toMatchObject({
      status: 'stopped',
      detail: 'Stopped by an operator.',
    });
  });
});

describe('cancel-pending', () => {
  test('cancels pending and held deliveries and stops a replay', async () => {
    const arranged = await arrange();
    for (let count = 0; count < 3; count += 1) await record(arranged, 'message.sent');
    const [held, settled, pending] = await deliveriesOf(arranged);
    await settle(held?.id ?? '', 'held');
    await settle(settled?.id ?? '', 'delivered');
    const path = `/webhooks/endpoints/${arranged.endpointId}`;
    const replayed = (await arranged.post(`${path}/replay`, { since: '2026-01-01T00:00:00Z' })).json<{
      id: string;
    }>();
    const response = await arranged.post(`${path}/cancel-pending`);
    expect(response.statusCode).toBe(202);
    const { id } = response.json<{ id: string }>();
    expect((await arranged.post(`${path}/cancel-pending`)).json()).toMatchObject({ id });
    await jobs.run(id, () => undefined);
    await jobs.run(replayed.id, () => undefined);
    expect((await arranged.get(`/webhooks/jobs/${id}`)).json()).toMatchObject({
      kind: 'cancel',
      status: 'completed',
      deliveries: 2,
    });
    expect((await arranged.get(`/webhooks/jobs/${replayed.id}`)).json()).toMatchObject({ status: 'stopped' });
    const now = new Map((await deliveriesOf(arranged)).map((delivery) => [delivery.id, delivery.status]));
    expect([held, settled, pending].map((delivery) => now.get(delivery?.id ?? ''))).toEqual([
      'canceled',
      'delivered',
      'canceled',
    ]);
    const signals = jobCommands
      .filter(({ signal }) => signal?.signalName === 'cancel')
      .map(({ signal }) => signal?.workflowId);
    expect(signals).toContain(`webhook/${pending?.id}`);
    expect(signals).not.toContain(`webhook/${held?.id}`);
  });
});

test('the purge deletes events past their retention with their deliveries and attempts, but no newer ones', async () => {
  const arranged = await arrange();
  await record(arranged, 'message.sent');
  await record(arranged, 'message.sent');
  const [newDelivery, oldDelivery] = await deliveriesOf(arranged);
  await settle(oldDelivery?.id ?? '', 'exhausted');
  const oldEvent = lowestIdAt('event', new Date(Date.now() - 31 * 86_400_000));
  await query(
    app.worker,
    sql`with copy as (insert into events (id, org_id, env_id, inbox_id, type, data, created_at)
       select ${oldEvent}, org_id, env_id, inbox_id, type, data, created_at from events where id = ${oldDelivery?.event_id} returning id)
     select id from copy`,
  );
  await query(
    app.worker,
    sql`update webhook_deliveries set event_id = ${oldEvent} where id = ${oldDelivery?.id}`,
  );
  await purgeEvents(app.worker, 30);
  expect((await deliveriesOf(arranged)).map(({ id }) => id)).toEqual([newDelivery?.id]);
  const attempts = await countRows(
    app.worker.db
      .selectFrom('webhook_delivery_attempts')
      .select('delivery_id')
      .where('delivery_id', '=', oldDelivery?.id ?? ''),
  );
  expect(attempts).toBe(0);
});
