import { EventEmitter, on } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from './eventually.ts';
import type { TestApp } from './test-app.ts';

export interface LiveEvent {
  /** Position of the event, which clients store. */
  id: string;
  type: string;
  data: { id: string; type: string; data: Record<string, unknown>; [field: string]: unknown };
}

/** A client of `GET /events/stream` that follows WHATWG's "server-sent events". */
export interface LiveStream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly events: LiveEvent[];
  readonly comments: string[];
  /** Position to resume from. */
  readonly lastEventId: string;
  readonly ended: boolean;
  /** The body of an error response. */
  readonly text: string;
  /** Waits until `count` events have arrived in total. */
  received(count: number): Promise<LiveEvent[]>;
  pause(): void;
  resume(): void;
  close(): void;
}

export interface LiveStreamOptions {
  token: string;
  query?: string;
  lastEventId?: string;
  environmentId?: string;
}

/** Makes the test app listen unless it already does. @returns the base URL of the API. */
export async function listen({ app }: Pick<TestApp, 'app'>): Promise<string> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/v1`;
}

/** Resolves after the response head, and for a stream after its first block. */
export async function openStream(baseUrl: string, options: LiveStreamOptions): Promise<LiveStream> {
  const { token, query = '', lastEventId, environmentId } = options;
  const request = get(`${baseUrl}/events/stream${query}`, {
    agent: false,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      ...(environmentId === undefined ? {} : { 'x-env-id': environmentId }),
    },
  });
  const response = await answerOf(request);
  const stream = follow(request, response);
  if (response.statusCode === 200) await eventually(() => assertTrue(stream.comments.includes('connected')));
  else await eventually(() => assertTrue(stream.ended));
  return stream;
}

async function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
}

function follow(request: ClientRequest, response: IncomingMessage): LiveStream {
  const events: LiveEvent[] = [];
  const comments: string[] = [];
  let lastEventId = '';
  let ended = false;
  let text = '';
  let rest = '';
  const changes = new EventEmitter();
  request.on('error', () => undefined);
  response.setEncoding('utf8');
  response.on('error', () => undefined);
  response.on('close', () => {
    ended = true;
  });
  response.on('data', (chunk: string) => {
    if (response.statusCode !== 200) {
      text += chunk;
      return;
    }
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) read(block);
    changes.emit('change');
  });

  function read(block: string): void {
    let type = 'message';
    let data: string | undefined;
    for (const line of block.split('\n')) {
      const [, field = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
      if (field === '') comments.push(value);
      if (field === 'id') lastEventId = value;
      if (field === 'event') type = value;
      if (field === 'data') data = value;
    }
    if (data !== undefined) events.push({ id: lastEventId, type, data: JSON.parse(data) });
  }

  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    comments,
    get lastEventId() {
      return lastEventId;
    },
    get ended() {
      return ended;
    },
    get text() {
      return text;
    },
    async received(count) {
      const signal = AbortSignal.timeout(15_000);
      const looks = on(changes, 'change', { signal });
      while (events.length < count)
        await looks.next().catch((error: unknown) => {
          throw new Error(`${events.length} of ${count} events arrived`, { cause: error });
        });
      return events.slice(0, count);
    },
    pause: () => response.pause(),
    resume: () => response.resume(),
    close: () => request.destroy(),
  };
}

function assertTrue(condition: boolean): void {
  if (!condition) throw new Error('not yet');
}
