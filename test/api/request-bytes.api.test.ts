import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/live-stream.ts';
import { type OpenRequest, openRequest } from '../support/open-request.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const MIB = 1024 * 1024;
const STALL_MS = 600 * TIME_FACTOR;
// Bodies are withheld for as long as a test takes.
const app = useTestApp({ bodyStallTimeoutMs: 600_000 });
const impatient = useTestApp({ bodyStallTimeoutMs: STALL_MS });

let url: string;
let impatientUrl: string;
let greedy: TestOrganization;
let other: TestOrganization;
let messages: string;
let uploads: string;
const open: OpenRequest[] = [];

beforeAll(async () => {
  url = await listen(app);
  impatientUrl = await listen(impatient);
  greedy = await createOrganization(app.worker);
  other = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, greedy);
  messages = `/inboxes/${inbox.id}/messages`;
  uploads = `/inboxes/${inbox.id}/attachments`;
});
afterEach(async () => {
  for (const request of open.splice(0)) request.close();
  // The bytes of a connection are held until the server has noticed its end.
  for (const { server } of [app.app, impatient.app])
    await eventually(async () => {
      server.closeIdleConnections();
      expect(await countConnections(server)).toBe(0);
    });
});

function countConnections(server: Server): Promise<number> {
  return new Promise((done, fail) => {
    server.getConnections((error, count) => (error ? fail(error) : done(count)));
  });
}

const JSON_HEADERS = { 'content-type': 'application/json' };

function send(path: string, token: string, bytes: number, base = url): OpenRequest {
  const headers = { ...JSON_HEADERS, 'content-length': bytes };
  const request = openRequest(`${base}${path}`, { token, headers });
  open.push(request);
  return request;
}

/** Whether nothing was answered for a moment. */
async function isPending(request: OpenRequest): Promise<boolean> {
  await pause(100);
  return request.text === '' && !request.closed;
}

test('a large body that arrives at full speed leaves most of each turn of the event loop to others', async () => {
  const { token } = greedy;
  let most = 0;
  let isOver = false;
  app.app.server.once('connection', (socket: Socket) => {
    let before = 0;
    const look = () => {
      most = Math.max(most, socket.bytesRead - before);
      before = socket.bytesRead;
      if (!isOver) setImmediate(look);
    };
    look();
  });
  // A client in another thread: one in this thread would send only between two turns.
  const client = new Worker(
    `const { workerData } = require('node:worker_threads');
     fetch(workerData.url, {
       method: 'POST', headers: workerData.headers, body: Buffer.alloc(workerData.bytes, 32),
     }).then((response) => process.exit(response.status === 400 ? 0 : 1));`,
    {
      eval: true,
      workerData: {
        url: `${url}${messages}`,
        headers: { ...JSON_HEADERS, authorization: `Bearer ${token}` },
        bytes: 8 * MIB,
      },
    },
  );
  const [exitCode] = await once(client, 'exit');
  isOver = true;
  expect(exitCode).toBe(0);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(MIB / 2);
});

describe('bodies of one credential', () => {
  test('have 32 MiB at the same time; the next one is refused before it is read, and its connection closes', async () => {
    // The server does not have to admit them in this order.
    const requests = Array.from({ length: 5 }, () => send(messages, greedy.token, 8 * MIB));
    const refused = await Promise.race(requests.map((request) => request.status().then(() => request)));
    const withheld = requests.filter((request) => request !== refused);
    expect(await refused.status()).toBe(429);
    expect(refused.text).toContain('"code":"rate_limited"');
    expect(refused.text.toLowerCase()).toContain('\r\nconnection: close\r\n');
    expect(refused.text.toLowerCase()).toContain('\r\nretry-after: 1\r\n');
    const small = send(messages, greedy.token, 100);
    expect(await small.status()).toBe(429);
    await eventually(() => expect(small.closed).toBe(true));
    for (const request of withheld) expect(await isPending(request)).toBe(true);

    // A connection that ends gives its bytes back.
    withheld[0]?.close();
    await eventually(async () => {
      const next = send(messages, greedy.token, 8 * MIB);
      expect(await isPending(next)).toBe(true);
    });
  });

  test('of unknown length count as they arrive', async () => {
    const headers = { ...JSON_HEADERS, 'transfer-encoding': 'chunked' };
    const requests = Array.from({ length: 6 }, () => {
      const request = openRequest(`${url}${messages}`, { token: greedy.token, headers });
      open.push(request);
      return request;
    });
    for (const request of requests) request.write(`a\r\n{"subject"\r\n`);
    await Promise.all(requests.map(async (request) => expect(await isPending(request)).toBe(true)));
    for (const request of requests) {
      const part = Buffer.alloc(5 * MIB, 'x');
      request.write(`${part.length.toString(16)}\r\n`);
      request.write(part);
      request.write('\r\n');
    }
    await eventually(() =>
      expect(requests.filter(({ text }) => text.startsWith('HTTP/1.1 429')).length).toBe(2),
    );
    expect(requests.filter(({ text }) => text === '')).toHaveLength(4);
  });

  test('count until the response, not longer', async () => {
    for (let round = 0; round < 6; round += 1) {
      const body = Buffer.alloc(8 * MIB, ' ');
      const response = await fetch(`${url}${messages}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${greedy.token}`, ...JSON_HEADERS },
        body,
      });
      expect(response.status).toBe(400);
      await response.arrayBuffer();
    }
  });
});

describe('bodies of one organization', () => {
  test('yield to those of another one: the newest that still arrives is taken back', async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, () => createKey(app.worker, greedy)));
    const withheld = keys.flatMap(({ token }) => [1, 2, 3, 4].map(() => send(messages, token, 8 * MIB - 1)));
    await eventually(() => expect(withheld.filter(({ text }) => text !== '')).toHaveLength(1));
    // 31 of the 32 are waiting for their bytes; the reserve is left.
    const inbox = await createInbox(app.worker, other);
    const requests = [1, 2, 3].map(() => send(`/inboxes/${inbox.id}/messages`, other.token, 8 * MIB));
    await eventually(() =>
      expect(withheld.filter(({ text }) => text !== '').length).toBeGreaterThanOrEqual(3),
    );
    for (const request of requests) expect(await isPending(request)).toBe(true);
    expect(
      withheld.filter(({ text }) => text !== '').every(({ text }) => text.startsWith('HTTP/1.1 429')),
    ).toBe(true);
    const calls = await Promise.all(
      Array.from({ length: 20 }, () =>
        fetch(`${url}/inboxes`, {
          method: 'POST',
          headers: { authorization: `Bearer ${other.token}`, ...JSON_HEADERS },
          body: '{}',
        }),
      ),
    );
    expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 201));
  });
});

describe('a body that does not move', () => {
  async function expectTimeout(request: OpenRequest): Promise<void> {
    expect(await request.status()).toBe(408);
    expect(request.text).toContain('"code":"request_timeout"');
    expect(request.text.toLowerCase()).toContain('\r\nconnection: close\r\n');
  }

  test('ends with 408', async () => {
    const request = send(messages, greedy.token, 8 * MIB, impatientUrl);
    request.write('{"subject": "');
    await expectTimeout(request);
  });

  test('ends with 408 before sign-in, and in a form', async () => {
    const anonymous = openRequest(`${impatientUrl}/auth/login`, {
      headers: { ...JSON_HEADERS, 'content-length': 1_000 },
    });
    const upload = openRequest(`${impatientUrl}${uploads}`, {
      token: greedy.token,
      headers: { 'content-type': 'multipart/form-data; boundary=b', 'content-length': 5 * MIB },
    });
    const chunked = openRequest(`${impatientUrl}${messages}`, {
      token: greedy.token,
      headers: { ...JSON_HEADERS, 'transfer-encoding': 'chunked' },
    });
    open.push(anonymous, upload, chunked);
    upload.write('--b\r\ncontent-disposition: form-data; name=file; filename=a.txt\r\n\r\nhello');
    chunked.write('1\r\n{\r\n');
    await Promise.all([anonymous, upload, chunked].map(expectTimeout));
  });

  test('goes on while bytes arrive, however slowly', async () => {
    const request = send(messages, greedy.token, 100, impatientUrl);
    for (let sent = 0; sent < 10; sent += 1) {
      await pause(200);
      request.write(' '.repeat(10));
    }
    expect(await request.status()).toBe(400);
  });
});
