import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { residentBytes } from '../support/isolated-service.ts';
import { sharedService } from '../support/service.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(90_000);
/** An attempt ends after 15 s (`WEBHOOK_TIMEOUT_MS`). */
const TIMEOUT_MS = 40_000;
const MIB = 1024 * 1024;

const service = sharedService();
const call: Call = apiClient(service, service.api_key);
const database = new pg.Client({ connectionString: service.database_url });
const receivers: WebhookReceiver[] = [];

beforeAll(() => database.connect());
afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  await database.end();
});

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;

/** A receiver's behavior, and the recorded result of its first attempt. */
interface Hostile {
  behaviour: Behaviour;
  attempt: { status_code: number | null; error: string | null; response_body?: unknown };
}

/** Bytes that the flood wrote to its sockets. */
let floodedBytes = 0;

function flood(_request: IncomingMessage, response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  const pour = () => {
    while (!response.destroyed) {
      floodedBytes += chunk.length;
      if (!response.write(chunk)) return;
    }
  };
  response.writeHead(200).on('drain', pour);
  pour();
}

function drip(response: ServerResponse, write: () => void): void {
  const timer = setInterval(write, 200);
  response.once('close', () => clearInterval(timer));
}

const HOSTILE: Record<string, Hostile> = {
  hangs: { behaviour: () => undefined, attempt: { status_code: null, error: 'timeout' } },
  redirects: {
    behaviour: (_request, response) => response.writeHead(307, { location: '/elsewhere' }).end(),
    attempt: { status_code: 307, error: 'HTTP 307' },
  },
  resets: {
    behaviour: (request) => request.socket.resetAndDestroy(),
    attempt: { status_code: null, error: 'ECONNRESET' },
  },
  'answers 10 MiB': {
    behaviour: (_request, response) => response.writeHead(500).end(Buffer.alloc(10 * MIB, 'x')),
    attempt: { status_code: 500, error: 'HTTP 500', response_body: 'x'.repeat(4096) },
  },
  'answers without end': {
    behaviour: flood,
    attempt: { status_code: 200, error: null, response_body: 'x'.repeat(4096) },
  },
  'drips its headers': {
    behaviour: ({ socket }, response) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      drip(response, () => socket.write('x-drip: 1\r\n'));
    },
    attempt: { status_code: null, error: 'timeout' },
  },
  'drips its body': {
    behaviour: (_request, response) => {
      response.writeHead(200);
      drip(response, () => response.write('.'));
    },
    attempt: { status_code: 200, error: null, response_body: expect.stringMatching(/^\.{10,}$/) },
  },
  'speaks no HTTP': {
    behaviour: ({ socket }) => socket.end('220 mail.example ESMTP\r\n'),
    attempt: { status_code: null, error: expect.stringMatching(/^HPE_/) as unknown as string },
  },
  'answers NUL in its body': {
    behaviour: (_request, response) => response.writeHead(400).end('a\0b'),
    attempt: { status_code: 400, error: 'HTTP 400', response_body: 'a\ufffdb' },
  },
  'answers NUL in a header': {
    behaviour: ({ socket }) => socket.end('HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n'),
    attempt: { status_code: null, error: expect.stringMatching(/^HPE_/) as unknown as string },
  },
  'answers bytes that are no text': {
    behaviour: (_request, response) => response.writeHead(503).end(Buffer.from([0xff, 0xfe, 0xed, 0xa0])),
    attempt: { status_code: 503, error: 'HTTP 503', response_body: expect.any(String) },
  },
  'promises more than it sends': {
    behaviour: ({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf'),
    attempt: { status_code: 200, error: null, response_body: 'half' },
  },
};

/** @returns the endpoint's id. */
async function subscribe(inboxId: string, behaviour?: Behaviour) {
  const receiver = new WebhookReceiver();
  receivers.push(receiver);
  if (behaviour) receiver.answerWith(behaviour);
  const { status, body } = await call('POST', '/webhooks/endpoints', {
    url: await receiver.start(),
    events: ['message.sent'],
    inbox_ids: [inboxId],
  });
  expect(status).toBe(201);
  return { receiver, endpointId: body.id };
}

async function send(inboxId: string): Promise<void> {
  const to = [{ email: 'ada@people.example' }];
  const { status } = await call('POST', `/inboxes/${inboxId}/messages`, { to, text_body: 'Hello.' });
  expect(status).toBe(201);
}

async function firstAttempt(endpointId: string) {
  const { rows } = await database.query(
    `select a.status_code, a.error, a.response_body, a.duration_ms from webhook_delivery_attempts a
     join webhook_deliveries d on d.id = a.delivery_id
     where d.endpoint_id = $1 and a.number = 1 and a.finished_at is not null order by d.id limit 1`,
    [endpointId],
  );
  expect(rows).toHaveLength(1);
  return rows[0];
}

/** When the event was recorded, by the clock of the database on this machine. */
async function recordedAt(inboxId: string): Promise<Date[]> {
  const { rows } = await database.query(
    `select created_at from events where inbox_id = $1 and type = 'message.sent' order by id`,
    [inboxId],
  );
  return rows.map(({ created_at }) => created_at as Date);
}

function workerResidentBytes(): number {
  const [pid] = readFileSync(join(service.dataDir, 'run', 'workers.pid'), 'utf8').split('\n');
  return residentBytes(Number(pid));
}

describe('receivers that hang, redirect, reset, flood, drip or send garbage', () => {
  test('affect only their own deliveries: a healthy receiver gets its events within 2 seconds', async () => {
    const inbox = await call('POST', '/inboxes', { display_name: 'Agent' });
    const { receiver: good } = await subscribe(inbox.body.id);
    await send(inbox.body.id);
    await eventually(() => expect(good.received).toHaveLength(1), TIMEOUT_MS);
    const endpoints: [string, string][] = [];
    for (const [name, { behaviour }] of Object.entries(HOSTILE)) {
      const { endpointId } = await subscribe(inbox.body.id, behaviour);
      endpoints.push([name, endpointId]);
    }
    const before = workerResidentBytes();

    // The first event reaches all of them together; the next ones arrive while slow attempts still hang.
    for (let count = 2; count <= 4; count += 1) {
      await send(inbox.body.id);
      await eventually(() => expect(good.received).toHaveLength(count), TIMEOUT_MS);
    }
    const recorded = await recordedAt(inbox.body.id);
    const delays = good.received.map(
      ({ receivedAt }, n) => receivedAt.getTime() - (recorded[n]?.getTime() ?? 0),
    );
    for (const delayMs of delays) expect(delayMs).toBeLessThan(2_000 * TIME_FACTOR);

    for (const [name, endpointId] of endpoints) {
      const attempt = await eventually(() => firstAttempt(endpointId), TIMEOUT_MS);
      expect({ name, ...attempt }).toMatchObject({ name, ...HOSTILE[name]?.attempt });
    }
    // A client that kept reading would have received bytes for 15 seconds, three times.
    expect(floodedBytes).toBeLessThan(3 * 10 * MIB);
    expect(workerResidentBytes() - before).toBeLessThan(128 * MIB);
    expect(receivers.flatMap(({ received }) => received.map(({ path }) => path))).not.toContain('/elsewhere');
  });
});
