import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { RawSmtpClient } from '../test/inbound/raw-smtp-client.ts';
import type { IsolatedService } from '../test/support/isolated-service.ts';
import { type OpenRequest, openRequest } from '../test/support/open-request.ts';
import { post as postOnce } from './send.ts';

const MIB = 1024 * 1024;
const SLOW_RECEIVERS = 10;
const TEST_CALLS = 250;
const SLOW_ANSWER_MS = 13_500;
const WITHHELD_BODIES = 150;
const STREAMS_PER_KEY = 100;
/** A gigabit a second. */
const LINK_PIECE_BYTES = 62_500;
const LINK_PIECES = 20;
const LINK_INTERVAL_MS = 10;
const REFUSED_PAUSE_MS = 10_000;
const DRIPPING_CONNECTIONS = 30;
const WRONG_LOGINS = 60;
const PARALLEL_CALLS = 60;
const PARALLEL_CONVERSIONS = 20;
const HTML_PARAGRAPHS = 8_000;
const REPLAYED_EVENTS = 100;
const REPLAYING_ENDPOINTS = 10;

/** The organization that takes all it can. */
export interface Greedy {
  stack: Pick<IsolatedService, 'baseUrl' | 'apiKey' | 'inboundPort'>;
  /** 22 of the same organization. */
  keys: string[];
  inboxId: string;
  organizationId: string;
  email: string;
}

/** Prepares to take a capacity. */
export type Force = (greedy: Greedy) => Promise<Start>;
/** Takes it at full force. */
type Start = () => Promise<Stop> | Stop;
type Stop = () => Promise<void>;

export const FORCES: Record<string, Force> = {
  'slow receivers': callSlowReceivers,
  replays: replayEvents,
  'HTML conversions': convertHtml,
  streams: openStreams,
  'dripping mail': dripMail,
  'wrong logins': failLogins,
  'row locks': lockOneRow,
  'sends, searches and exports': callEverything,
  'withheld bodies': withholdBodies,
};

/** Ten endpoints that answer 200 after 13.5 s, and 250 test calls. */
async function callSlowReceivers({ stack }: Greedy): Promise<Start> {
  const server = createServer((_request, response) => {
    setTimeout(() => response.writeHead(200).end(), SLOW_ANSWER_MS);
  });
  const url = await listenOn(server);
  const endpoints: string[] = [];
  for (let index = 0; index < SLOW_RECEIVERS; index += 1) {
    const endpoint = { url: `${url}${index}`, events: ['message.received'] };
    endpoints.push((await post(stack, '/webhooks/endpoints', endpoint)).id);
  }
  return async () => {
    for (const id of endpoints) {
      const calls = Array.from({ length: TEST_CALLS / SLOW_RECEIVERS }, () =>
        post(stack, `/webhooks/endpoints/${id}/test`, {}),
      );
      await Promise.all(calls);
    }
    return async () => {
      server.closeAllConnections();
      server.close();
    };
  };
}

/**
 * 150 connections with a JSON body of 8 MiB whose last bytes are withheld; each begins again when it is refused. Together they
 * fill a link of a gigabit. Faster, the bench would measure how this machine copies 600 MB into the buffers of its sockets.
 */
async function withholdBodies({ stack, keys, inboxId }: Greedy): Promise<Start> {
  const requests = new Set<OpenRequest>();
  const piece = Buffer.alloc(LINK_PIECE_BYTES, ' ');
  const pieces = Math.floor((8 * MIB - 1) / LINK_PIECE_BYTES);
  const waiting: (() => void)[] = [];
  let isOver = false;
  const withhold = async (index: number) => {
    while (!isOver) {
      const request = openRequest(`${stack.baseUrl}/api/v1/inboxes/${inboxId}/messages`, {
        token: keys[index % keys.length] ?? '',
        headers: { 'content-type': 'application/json', 'content-length': 8 * MIB },
      });
      requests.add(request);
      for (let sent = 0; sent < pieces && request.text === '' && !request.closed; sent += 1) {
        await new Promise<void>((carried) => waiting.push(carried));
        request.write(piece);
      }
      await request.status().catch(() => undefined);
      request.close();
      requests.delete(request);
      if (!isOver) await pause(REFUSED_PAUSE_MS);
    }
  };
  return () => {
    const link = setInterval(() => {
      for (const carry of waiting.splice(0, LINK_PIECES)) carry();
    }, LINK_INTERVAL_MS);
    const lanes = Array.from({ length: WITHHELD_BODIES }, (_, index) => withhold(index));
    return async () => {
      isOver = true;
      for (const request of requests) request.close();
      await Promise.all(lanes);
      clearInterval(link);
    };
  };
}

/** 22 keys with 100 streams each; each connects again when it ends. */
async function openStreams({ stack, keys }: Greedy): Promise<Start> {
  const requests = new Set<OpenRequest>();
  let isOver = false;
  const stream = async (token: string, delayMs: number) => {
    await pause(delayMs);
    while (!isOver) {
      const request = openRequest(`${stack.baseUrl}/api/v1/events/stream`, { token, method: 'GET' });
      requests.add(request);
      await new Promise((done) => request.socket.once('close', done));
      requests.delete(request);
      await pause(5_000);
    }
  };
  return async () => {
    for (const token of keys)
      for (let index = 0; index < STREAMS_PER_KEY; index += 1) void stream(token, index * 50);
    await pause(STREAMS_PER_KEY * 50);
    return async () => {
      isOver = true;
      for (const request of requests) request.close();
    };
  };
}

/** Connections of two networks that send large messages to one inbox, just fast enough to be kept. */
async function dripMail({ stack, email }: Greedy): Promise<Start> {
  const clients: RawSmtpClient[] = [];
  let isOver = false;
  const drip = async (network: string) => {
    const client = await RawSmtpClient.greeted(stack.inboundPort, network);
    clients.push(client);
    await client.startData(email);
    client.write(`${'x'.repeat(998)}\r\n`.repeat(1_500));
    while (!isOver && !client.socket.destroyed) {
      client.write(`${'x'.repeat(998)}\r\n`.repeat(20));
      await pause(1_000);
    }
  };
  return async () => {
    for (let index = 0; index < DRIPPING_CONNECTIONS; index += 1)
      void drip(index % 2 === 0 ? '127.0.0.2' : '127.0.0.3').catch(() => undefined);
    await pause(2_000);
    return async () => {
      isOver = true;
      for (const client of clients) client.close();
    };
  };
}

/** One address with 60 wrong logins at a time. */
async function failLogins({ stack }: Greedy): Promise<Start> {
  return repeat(WRONG_LOGINS, async (index) => {
    await call(`${stack.baseUrl}/api/v1/auth/login`, '', {
      email: `person-${index}@people.example`,
      password: 'wrong password',
    });
    await pause(200);
  });
}

/** Sends, searches and exports of one organization, 60 at a time. */
async function callEverything({ stack, keys, inboxId, organizationId }: Greedy): Promise<Start> {
  const base = `${stack.baseUrl}/api/v1`;
  const calls = [
    (token: string) =>
      call(`${base}/inboxes/${inboxId}/messages`, token, {
        to: [{ email: 'person@people.example' }],
        subject: 'Greedy',
        text_body: 'x'.repeat(10_000),
      }),
    (token: string) => call(`${base}/inboxes/${inboxId}/messages?q=hello%20subject:greedy`, token),
    (token: string) => call(`${base}/organizations/${organizationId}/export`, token),
  ];
  return repeat(PARALLEL_CALLS, async (index) => {
    await calls[index % calls.length]?.(keys[index % keys.length] ?? '');
    await pause(20);
  });
}

/** 20 forwards at a time of a message with a megabyte of HTML, each of which the service sanitizes and converts to text. */
async function convertHtml({ stack, keys, inboxId, email }: Greedy): Promise<Start> {
  const client = await RawSmtpClient.greeted(stack.inboundPort, '127.0.0.4');
  await client.startData(email);
  client.write('From: ada@people.example\r\nSubject: Large HTML\r\nContent-Type: text/html\r\n\r\n');
  for (let paragraph = 0; paragraph < HTML_PARAGRAPHS; paragraph += 1)
    client.write(
      `<div><p style="color: red">Paragraph ${paragraph} <a href="https://a.example">of</a> many</p></div>\r\n`,
    );
  client.write('.\r\n');
  await client.reply();
  client.close();
  const base = `${stack.baseUrl}/api/v1`;
  const id = await waitForLargeHtml(`${base}/inboxes/${inboxId}`, stack.apiKey);
  return repeat(PARALLEL_CONVERSIONS, async (index) => {
    await call(`${base}/messages/${id}/forward`, keys[index % keys.length] ?? '', {
      to: [{ email: 'person@people.example' }],
    });
  });
}

async function waitForLargeHtml(inbox: string, apiKey: string): Promise<string> {
  for (;;) {
    const response = await fetch(`${inbox}/messages/wait?timeout_seconds=60&subject=Large%20HTML`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { id } = (await response.json()) as { id?: string };
    if (id) return id;
    // The preparations of other forces may have used up the key's rate.
    if (response.status !== 429) throw new Error('The message with large HTML did not arrive');
    await pause(1_000);
  }
}

/** Ten endpoints to which the same hundred events are replayed again and again: bulk jobs and their deliveries. */
async function replayEvents({ stack, keys, inboxId }: Greedy): Promise<Start> {
  const server = createServer((_request, response) => response.writeHead(200).end());
  const url = await listenOn(server);
  const base = `${stack.baseUrl}/api/v1`;
  const since = new Date(Date.now() - 1_000).toISOString();
  for (let index = 0; index < REPLAYED_EVENTS; index += 1)
    await call(`${base}/inboxes/${inboxId}/messages`, stack.apiKey, {
      to: [{ email: 'person@people.example' }],
      subject: 'Replayed',
      text_body: 'Hello',
    });
  const endpoints = await Promise.all(
    Array.from({ length: REPLAYING_ENDPOINTS }, (_, index) =>
      post(stack, '/webhooks/endpoints', { url: `${url}${index}`, events: ['message.sent'] }),
    ),
  );
  const replay = repeat(endpoints.length, async (index) => {
    await call(`${base}/webhooks/endpoints/${endpoints[index]?.id}/replay`, keys[index] ?? '', { since });
    await pause(1_000);
  });
  return () => {
    const stop = replay();
    return async () => {
      await stop();
      server.closeAllConnections();
      server.close();
    };
  };
}

/** 60 changes of one inbox at a time, each of which waits for the others' lock. */
async function lockOneRow({ stack, keys, inboxId }: Greedy): Promise<Start> {
  return repeat(PARALLEL_CALLS, async (index) => {
    await fetch(`${stack.baseUrl}/api/v1/inboxes/${inboxId}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${keys[index % keys.length]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ display_name: `Greedy ${index}` }),
    }).then((response) => response.arrayBuffer());
  });
}

function repeat(lanes: number, work: (index: number) => Promise<void>): () => Stop {
  return () => {
    let isOver = false;
    const running = Array.from({ length: lanes }, async (_, index) => {
      while (!isOver) await work(index).catch(() => pause(100));
    });
    return async () => {
      isOver = true;
      await Promise.all(running);
    };
  };
}

/** Posts what a force prepares, as often as the rate limit of its key refuses it. */
async function post(stack: Greedy['stack'], path: string, body: object): Promise<{ id: string }> {
  for (;;) {
    try {
      return await postOnce(stack, path, body);
    } catch (error) {
      if (!(error as Error).message.includes('returned 429')) throw error;
      await pause(1_000);
    }
  }
}

async function call(url: string, token: string, body?: object): Promise<void> {
  const response = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  await response.arrayBuffer();
}

/** @returns the URL, with a slash. */
export async function listenOn(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
