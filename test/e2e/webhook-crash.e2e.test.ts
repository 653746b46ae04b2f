import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client, type WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import nodemailer from 'nodemailer';
import pg from 'pg';
import { findFreePort } from '../../dev/stack/ports.ts';
import { startTemporal, type TemporalServer } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
  RETRY_DELIVERY_NOW,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(300_000);
/** A dead worker's attempt is repeated when its lease has ended, after 30 s; the outbox is swept every minute. */
const TIMEOUT_MS = 200_000;

const folder = mkdtempSync(join(tmpdir(), 'agent-email-webhook-crash-'));
let temporal: TemporalServer;
let temporalPort: number;
let service: IsolatedService;
let call: Call;
let database: pg.Client;
let temporalClient: Client;

/** A separate Temporal server that the test can kill. Its state is in a file. */
async function startOwnTemporal(): Promise<TemporalServer> {
  const cacheDir = resolve(import.meta.dirname, '../../.cache/temporal');
  return startTemporal({
    executable: await findTemporalCli({ cacheDir, environment: process.env, log: () => undefined }),
    port: temporalPort,
    databaseFile: join(folder, 'temporal.db'),
    logFile: join(folder, 'temporal.log'),
  });
}

beforeAll(async () => {
  temporalPort = await findFreePort();
  temporal = await startOwnTemporal();
  service = await startIsolatedService({ TEMPORAL_ADDRESS: temporal.address, TEMPORAL_NAMESPACE: 'default' });
  call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  database = new pg.Client({ connectionString: service.ownerDatabaseUrl });
  await database.connect();
  temporalClient = new Client({ connection: await connectToTemporal(temporal.address) });
});
afterAll(async () => {
  await database?.end();
  await temporalClient?.connection.close();
  await service?.stop();
  await temporal?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** An inbox whose sends to `blocked.example` are blocked, and a receiver of its events. */
async function arrange() {
  const receiver = new WebhookReceiver();
  const url = await receiver.start();
  const inbox = (await call('POST', '/inboxes', {})).body;
  await call('POST', '/lists/send/block', { entry: 'blocked.example', inbox_id: inbox.id });
  const endpoint = await call('POST', '/webhooks/endpoints', {
    url,
    events: ['message.rejected', 'message.received'],
    inbox_ids: [inbox.id],
  });
  expect(endpoint.status).toBe(201);
  return { receiver, inbox, endpointId: endpoint.body.id };
}

/** The call is refused, which emits an event immediately. */
async function refusedSend(inboxId: string, subject: string): Promise<void> {
  const { status } = await call('POST', `/inboxes/${inboxId}/messages`, {
    to: [{ email: 'ada@blocked.example' }],
    subject,
    text_body: 'No.',
  });
  expect(status).toBe(422);
}

const subjectsOf = (receiver: WebhookReceiver) =>
  new Set(receiver.received.map(({ body }) => JSON.parse(body).data.subject));

describe('a webhook', () => {
  test('whose worker is killed during an attempt is delivered, and both attempts are recorded', async () => {
    const { receiver, inbox, endpointId } = await arrange();
    receiver.answerWith((_request, response, attempt) => {
      // The first request hangs; the killed worker never reads the response.
      if (attempt > 1) response.writeHead(204).end();
    });
    await refusedSend(inbox.id, 'Once at least');
    await eventually(() => expect(receiver.received).toHaveLength(1), TIMEOUT_MS);
    await service.kill('workers');
    await service.start('workers');
    await eventually(async () => {
      const { rows } = await database.query('select status from webhook_deliveries where endpoint_id = $1', [
        endpointId,
      ]);
      expect(rows).toEqual([{ status: 'delivered' }]);
    }, TIMEOUT_MS);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect(ids).toEqual([ids[0], ids[0]]);
    const { rows: attempts } = await database.query(
      `select number, status_code, finished_at is not null as finished from webhook_delivery_attempts a
       join webhook_deliveries d on d.id = a.delivery_id where d.endpoint_id = $1 order by number`,
      [endpointId],
    );
    expect(attempts).toEqual([
      { number: 1, status_code: null, finished: false },
      { number: 2, status_code: 204, finished: true },
    ]);
    const { rows: leased } = await database.query(
      'select slot from webhook_slots where endpoint_id = $1 and leased_until > now()',
      [endpointId],
    );
    expect(leased).toEqual([]);
    await receiver.stop();
  });

  /** Emits an event. @returns the run of its delivery, once the receiver has the request. */
  async function emitAndFind({ receiver, inbox, endpointId }: Awaited<ReturnType<typeof arrange>>) {
    await refusedSend(inbox.id, 'First');
    await eventually(() => expect(receiver.received).toHaveLength(1), TIMEOUT_MS);
    const { rows } = await database.query('select id from webhook_deliveries where endpoint_id = $1', [
      endpointId,
    ]);
    const id: string = rows[0].id;
    const read = async () => (await call('GET', `/webhooks/deliveries/${id}`)).body;
    return { read, handle: temporalClient.workflow.getHandle(deliverWebhookWorkflowId(id, 1)) };
  }

  test('whose first attempt fails shows why in Pending Activities, with the attempts of its row', async () => {
    const arranged = await arrange();
    arranged.receiver.answerWith((_request, response) => response.writeHead(503).end());
    const { read, handle } = await emitAndFind(arranged);
    await eventually(async () => {
      const { pendingActivities = [] } = (await handle.describe()).raw;
      expect(pendingActivities?.map(({ lastFailure }) => lastFailure?.message)).toEqual([
        'Attempt 1: HTTP 503',
      ]);
    }, TIMEOUT_MS);
    expect(arranged.receiver.received).toHaveLength(1);
    expect(await read()).toMatchObject({ status: 'pending', attempts: [{ status_code: 503 }] });
    arranged.receiver.answerWith((_request, response) => response.writeHead(204).end());
    await handle.signal(RETRY_DELIVERY_NOW);
    await expect(handle.result()).resolves.toBe('delivered');
    await arranged.receiver.stop();
  });

  test.each([
    { by: 'the signal', cancel: (handle: WorkflowHandle) => handle.signal(CANCEL_DELIVERY) },
    { by: 'an ended run', cancel: (handle: WorkflowHandle) => handle.cancel() },
  ])(
    'that is canceled by $by during its first attempt, which fails, is not attempted again',
    async ({ cancel }) => {
      const arranged = await arrange();
      const answered = Promise.withResolvers<void>();
      arranged.receiver.answerWith(async (_request, response) => {
        // Longer than the heartbeat of the workflow task, which brings the cancellation.
        await pause(10_000);
        response.writeHead(503).end();
        answered.resolve();
      });
      const { read, handle } = await emitAndFind(arranged);
      await cancel(handle);
      await answered.promise;
      await handle.result().catch((error: WorkflowFailedError) => {
        expect(error.cause).toMatchObject({ name: 'CancelledFailure' });
      });
      expect(await read()).toMatchObject({ status: 'canceled', attempts: [{ status_code: 503 }] });
      expect(arranged.receiver.received).toHaveLength(1);
      await arranged.receiver.stop();
    },
  );

  test('for an event during an outage of Temporal is delivered afterwards', async () => {
    const { receiver, inbox } = await arrange();
    const relay = nodemailer.createTransport({
      host: '127.0.0.1',
      port: service.inboundPort,
      secure: false,
      ignoreTLS: true,
    });
    await temporal.kill();
    const subjects = ['Refused 1', 'Refused 2', 'Refused 3'];
    for (const subject of subjects) await refusedSend(inbox.id, subject);
    await relay.sendMail({
      from: 'ada@people.example',
      to: inbox.email,
      subject: 'Received',
      text: 'While it was down.',
    });
    relay.close();
    expect(receiver.received).toEqual([]);
    temporal = await startOwnTemporal();
    await eventually(
      () => expect(subjectsOf(receiver)).toEqual(new Set([...subjects, 'Received'])),
      TIMEOUT_MS,
    );
    await receiver.stop();
  });
});
