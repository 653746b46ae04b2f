import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import {
  AgentEmail,
  APIError,
  ConnectionError,
  type Event,
  TimeoutError,
} from '../../clients/typescript/src/index.ts';
import { answerJson, problem, type Reply, ScriptedServer } from '../support/scripted-server.ts';

async function start(reply: Reply, maxRetries = 2) {
  const server = await ScriptedServer.start(reply);
  const client = new AgentEmail({ apiKey: 'ask_secret', baseUrl: server.url, maxRetries });
  return { server, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const block = (number: number, subject = 'Grüße ✉️') =>
  `id: pos_${number}\nevent: message.received\ndata: ${JSON.stringify({ id: `evt_${number}`, type: 'message.received', data: { subject } })}\n\n`;

function open(response: ServerResponse, text = ''): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`retry: 10\nid: pos_0\n: connected\n\n${text}`);
  return response;
}

const firstEvents = async (stream: AsyncIterable<Event>, count: number): Promise<Event[]> => {
  const events: Event[] = [];
  for await (const event of stream) if (events.push(event) === count) break;
  return events;
};

describe('an event stream', () => {
  test('gives events however their bytes are cut', async () => {
    const bytes = Buffer.from(`${block(1) + block(2).replaceAll('\n', '\r\n')}: alive\n\n${block(3)}`);
    await using run = await start(async (response) => {
      open(response);
      for (const byte of bytes) {
        response.write(Buffer.of(byte));
        if (byte > 127 || byte < 32) await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const events = await firstEvents(
      run.client.events.stream({ types: ['message.received', 'message.sent'] }),
      3,
    );
    expect(events.map(({ id }) => id)).toEqual(['evt_1', 'evt_2', 'evt_3']);
    expect(events[1]?.data).toEqual({ subject: 'Grüße ✉️' });
    expect(run.server.received[0]).toMatchObject({
      url: '/api/v1/events/stream?types=message.received%2Cmessage.sent',
      headers: { accept: 'text/event-stream', authorization: 'Bearer ask_secret' },
    });
  });

  test('goes on after its last event when the connection breaks, without what was cut off', async () => {
    await using run = await start((response, { headers }, number) => {
      if (number === 1) return response.destroy();
      const last = Number(headers['last-event-id']?.toString().slice(4) ?? 0);
      open(response, block(last + 1) + block(last + 2).slice(0, -20));
      setTimeout(() => response.destroy(), 20);
    });
    const stream = run.client.events.stream();
    const events = await firstEvents(stream, 4);
    expect(events.map(({ id }) => id)).toEqual(['evt_1', 'evt_2', 'evt_3', 'evt_4']);
    expect(run.server.received.map(({ headers }) => headers['last-event-id'])).toEqual([
      undefined,
      undefined,
      'pos_1',
      'pos_2',
      'pos_3',
    ]);
    expect(stream.position).toBe('pos_4');
  });

  test('resumes before its first event from the position of the beginning', async () => {
    await using run = await start((response, _request, number) => {
      open(response, number === 1 ? '' : block(1));
      if (number === 1) setTimeout(() => response.end(), 20);
    });
    await firstEvents(run.client.events.stream(), 1);
    expect(run.server.received[1]?.headers['last-event-id']).toBe('pos_0');
  });

  test('open begins it before it is read', async () => {
    await using run = await start((response, _request, number) => {
      if (number === 1) return response.destroy();
      return open(response, number === 2 ? '' : block(1));
    });
    const stream = run.client.events.stream();
    await stream.open();
    expect(stream.position).toBe('pos_0');
    await stream.open();
    expect(run.server.received).toHaveLength(2);
    await firstEvents(stream, 1);
    expect(run.server.received[2]?.headers['last-event-id']).toBe('pos_0');
  });

  test('open returns only once the service has accepted the position', async () => {
    await using run = await start((response, { headers }) => {
      if (headers['last-event-id'] !== 'evt_8')
        return answerJson(response, 400, problem(400, 'invalid_request'));
      return open(response, block(9));
    });
    await expect(run.client.events.stream({ last_event_id: 'evt_bad' }).open()).rejects.toThrow(APIError);
    const stream = run.client.events.stream({ last_event_id: 'evt_8' });
    expect(stream.position).toBe('evt_8');
    await stream.open();
    expect(stream.position).toBe('evt_8');
    expect((await firstEvents(stream, 1)).map(({ id }) => id)).toEqual(['evt_9']);
    expect(stream.position).toBe('pos_9');
    const named = run.client.events.stream({ after: 'evt_8' });
    expect(named.position).toBe('evt_8');
    await named.open();
  });

  test('a closed stream can be neither opened nor read', async () => {
    await using run = await start((response) => open(response, block(1)));
    const closed = run.client.events.stream();
    closed.close();
    const read = run.client.events.stream();
    await firstEvents(read, 1);
    for (const stream of [closed, read]) {
      await expect(stream.open()).rejects.toThrow('The event stream is closed.');
      await expect(firstEvents(stream, 1)).rejects.toThrow('The event stream is closed.');
    }
    expect(run.server.received).toHaveLength(1);
  });

  test('starts where the caller says', async () => {
    await using run = await start((response) => open(response, block(9)));
    await firstEvents(run.client.events.stream({ last_event_id: 'evt_8', inbox_id: 'inb_1' }), 1);
    expect(run.server.received[0]).toMatchObject({
      url: '/api/v1/events/stream?inbox_id=inb_1',
      headers: { 'last-event-id': 'evt_8' },
    });
  });

  test('waits for Retry-After, and goes on after 5xx', async () => {
    await using run = await start((response, _request, number) => {
      if (number === 1)
        return answerJson(response, 429, problem(429, 'rate_limited'), { 'retry-after': '1' });
      if (number === 2) return answerJson(response, 503, problem(503, 'unavailable'));
      return open(response, block(1));
    });
    await firstEvents(run.client.events.stream(), 1);
    const [first, second] = run.server.received;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900);
  });

  test('ends with the error when the key is revoked', async () => {
    await using run = await start((response, _request, number) => {
      if (number > 1) return answerJson(response, 401, problem(401, 'unauthenticated'));
      return open(response, block(1)).end(': closing, unauthenticated\n\n');
    });
    await expect(firstEvents(run.client.events.stream(), 2)).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    expect(run.server.received).toHaveLength(2);
  });

  test('fails if it cannot be opened at all', async () => {
    await using run = await start((response) => response.destroy(), 1);
    await expect(firstEvents(run.client.events.stream(), 1)).rejects.toThrow(ConnectionError);
    expect(run.server.received).toHaveLength(2);
  });

  test('close ends the loop and the connection, a signal ends them with its reason', async () => {
    const closed: Promise<unknown>[] = [];
    await using run = await start((response) => closed.push(once(open(response, block(1)), 'close')));
    const stream = run.client.events.stream();
    for await (const _ of stream) setTimeout(() => stream.close(), 20);
    const controller = new AbortController();
    const aborted = async () => {
      for await (const _ of run.client.events.stream({}, { signal: controller.signal }))
        setTimeout(() => controller.abort(new Error('enough')), 20);
    };
    await expect(aborted()).rejects.toThrow('enough');
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });

  test('an unknown type of event is given', async () => {
    const event = { id: 'evt_1', type: 'inbox.painted', data: { colour: 'green' } };
    await using run = await start((response) => open(response, `id: a\ndata: ${JSON.stringify(event)}\n\n`));
    expect(await firstEvents(run.client.events.stream(), 1)).toEqual([event]);
  });
});

describe('waiting', () => {
  const TIMED_OUT = { object: 'timeout', timed_out: true };

  test('repeats the call until there is a message, and looks back to its beginning', async () => {
    const message = { object: 'message', id: 'msg_1', codes: [{ value: '481516', raw: '481 516' }] };
    await using run = await start((response, _request, number) =>
      answerJson(response, 200, number < 3 ? TIMED_OUT : message, { date: 'Fri, 01 Jan 2027 00:01:00 GMT' }),
    );
    const code = await run.client.waitForCode('inb_1', { from: 'shop.example' }, { timeoutSeconds: 400 });
    expect(code).toMatchObject({ value: '481516', message: { id: 'msg_1' } });
    const queries = run.server.received.map(({ url }) => new URL(url, 'http://localhost').searchParams);
    expect(Object.fromEntries(queries[0] ?? [])).toEqual({
      from: 'shop.example',
      view: 'agent',
      for: 'code',
      timeout_seconds: '300',
    });
    // By the clock of the service: half a minute before the first call.
    expect(queries[1]?.get('since')).toMatch(/^2027-01-01T00:00:2[78]/);
    expect(queries[2]?.get('since')).toBe(queries[1]?.get('since'));
  });

  test('keeps the caller’s since', async () => {
    await using run = await start((response, _request, number) =>
      answerJson(response, 200, number === 1 ? TIMED_OUT : { object: 'message', id: 'msg_2' }),
    );
    await run.client.waitForMessage('thr_1', { since: 'msg_1' });
    expect(run.server.received.map(({ url }) => url.replace(/\d+$/, 'n'))).toEqual(
      Array(2).fill('/api/v1/threads/thr_1/wait?since=msg_1&timeout_seconds=n'),
    );
  });

  test('ends with a TimeoutError', async () => {
    await using run = await start((response) => setTimeout(() => answerJson(response, 200, TIMED_OUT), 100));
    const { client } = run;
    const options = { timeoutSeconds: 0.3 };
    const messages = await Promise.all(
      [
        client.waitForOutcome('msg_1', options),
        client.waitForDecision('drf_1', options),
        client.waitForMessage('inb_1', {}, options),
        client.waitForCode('thr_1', {}, options),
      ].map((wait) => wait.catch((error) => error instanceof TimeoutError && error.message)),
    );
    expect(messages).toEqual([
      'The outcome of msg_1 was not known within 0.3 s.',
      'There was no decision about drf_1 within 0.3 s.',
      'No message came to inb_1 within 0.3 s.',
      'No code came to thr_1 within 0.3 s.',
    ]);
    expect(run.server.received.map(({ url }) => url)).toEqual(
      expect.arrayContaining([
        '/api/v1/messages/msg_1/wait?timeout_seconds=1',
        '/api/v1/drafts/drf_1/wait?timeout_seconds=1',
      ]),
    );
  });

  test('an error ends it', async () => {
    await using run = await start((response) => answerJson(response, 404, problem(404, 'not_found')));
    await expect(run.client.waitForMessage('inb_1')).rejects.toThrow(APIError);
  });
});
