import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import pg from 'pg';
import { type Answer, apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { SmtpSink } from '../support/smtp-sink.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(420_000);
/** Temporal notices a dead worker by the timeout of its activity, and the reconciler runs every minute. */
const SETTLED_TIMEOUT_MS = 240_000;
const SENDS = 60;
const RECEIVED = 30;
/** The processes are killed when this many of the calls are done. */
const KILL_AFTER = 20;

const relay = new SmtpSink();
const receiver = new WebhookReceiver();
let service: IsolatedService;
let database: pg.Client;

beforeAll(async () => {
  service = await startIsolatedService({ SMTP_RELAY_PORT: String(await relay.start()) });
  await receiver.start();
  database = new pg.Client({ connectionString: service.ownerDatabaseUrl });
  await database.connect();
});
afterAll(async () => {
  await database?.end();
  await service?.stop();
  await Promise.all([relay.stop(), receiver.stop()]);
});

/** A client of two APIs that repeats a call at the other one, with the same key, until one of them answers. */
function persistentClient(
  clients: readonly Call[],
): (path: string, body: object, key: string) => Promise<Answer> {
  return (path, body, key) =>
    eventually(async () => {
      const call = clients[Math.floor(Math.random() * clients.length)] as Call;
      const { status, body: answer } = await call('POST', path, body, { 'idempotency-key': key });
      expect([200, 201]).toContain(status);
      return answer;
    }, 60_000);
}

/** Hands one message to a listener, and repeats it with the same Message-ID until it is accepted, as a mail server does. */
async function deliver(port: number, to: string, index: number): Promise<void> {
  await eventually(async () => {
    const transport = nodemailer.createTransport({
      host: '127.0.0.1',
      port,
      tls: { rejectUnauthorized: false },
    });
    try {
      await transport.sendMail({
        from: 'ada@people.example',
        to,
        subject: `In ${index}`,
        messageId: `<in-${index}@people.example>`,
        text: 'Hello.',
      });
    } finally {
      transport.close();
    }
  }, 60_000);
}

test('two APIs and four workers under load lose nothing and send nothing twice when half of them are killed', async () => {
  // Workers of every queue, and one more for each of the busiest queues.
  const second = await service.startApi();
  const victims = [
    await service.startScript('workers/outbound.ts', {}),
    await service.startScript('workers/webhooks.ts', {}),
  ];
  await service.startScript('workers/inbound.ts', {});
  const calls = [service.baseUrl, second.baseUrl].map((base_url) => apiClient({ base_url }, service.apiKey));
  const [survivor] = calls as [Call];
  const post = persistentClient(calls);

  const inbox = (await survivor('POST', '/inboxes', {})).body;
  const events = ['message.sent', 'message.received'];
  await survivor('POST', '/webhooks/endpoints', { url: receiver.url, events, inbox_ids: [inbox.id] });

  let done = 0;
  let killed = false;
  const killHalf = () => {
    if (killed || done < KILL_AFTER) return;
    killed = true;
    for (const pid of [second.pid, ...victims]) process.kill(pid, 'SIGKILL');
  };
  const sent = new Map<string, string>();
  const work = [
    ...Array.from({ length: SENDS }, (_, index) => async () => {
      const body = {
        to: [{ email: `p${index}@people.example` }],
        subject: `Out ${index}`,
        text_body: 'Once.',
      };
      const message = await post(`/inboxes/${inbox.id}/messages`, body, `send-${index}`);
      sent.set(`p${index}@people.example`, message.id);
    }),
    ...Array.from({ length: RECEIVED }, (_, index) => () => deliver(service.inboundPort, inbox.email, index)),
  ].sort(() => Math.random() - 0.5);
  const lane = async () => {
    for (let next = work.pop(); next; next = work.pop()) {
      await next();
      done += 1;
      killHalf();
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  expect(killed).toBe(true);

  // Every send ends as sent, or as one that a person must settle, because its worker died in the middle.
  const statuses = await eventually(async () => {
    const { rows } = await database.query<{ id: string; status: string }>(
      `select id, status from messages where inbox_id = $1 and direction = 'outbound'`,
      [inbox.id],
    );
    expect(rows).toHaveLength(SENDS);
    for (const { status } of rows) expect(['sent', 'needs_attention']).toContain(status);
    return new Map(rows.map(({ id, status }) => [id, status]));
  }, SETTLED_TIMEOUT_MS);
  const copies = Map.groupBy(relay.mails, ({ rcptTo: [recipient = ''] }) => recipient);
  for (const [recipient, id] of sent) {
    const count = copies.get(recipient)?.length ?? 0;
    const expected = statuses.get(id) === 'sent' ? [1] : [0, 1];
    expect({ recipient, count, isRight: expected.includes(count) }).toEqual({
      recipient,
      count,
      isRight: true,
    });
  }

  // What was accepted is a message, and only one, although some of it was handed over twice.
  await eventually(async () => {
    const { rows } = await database.query<{ subject: string }>(
      `select subject from messages where inbox_id = $1 and direction = 'inbound'`,
      [inbox.id],
    );
    expect(rows.map(({ subject }) => subject).sort()).toEqual(
      Array.from({ length: RECEIVED }, (_, index) => `In ${index}`).sort(),
    );
  }, SETTLED_TIMEOUT_MS);

  // Each event has arrived.
  await eventually(async () => {
    const { rows } = await database.query<{ id: string }>(
      'select id from events where inbox_id = $1 and type = any($2)',
      [inbox.id, events],
    );
    const arrived = new Set(receiver.received.map(({ body }) => (JSON.parse(body) as { id: string }).id));
    expect(rows.filter(({ id }) => !arrived.has(id))).toEqual([]);
    expect(rows.length).toBeGreaterThanOrEqual(RECEIVED);
  }, SETTLED_TIMEOUT_MS);
});
