import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';

/** Hears what is notified on a channel of PostgreSQL, over one connection that is made again whenever it breaks. */
export interface ChannelListener {
  /** The connection stands, and a notification came through it within the last {@link CHECK_EVERY_MS}. */
  readonly listening: boolean;
  close(): Promise<void>;
}

export interface ChannelListenerOptions {
  /** A connection of its own, to PostgreSQL itself: a pooler that shares connections between transactions hears nothing. */
  url: string;
  channel: string;
  logger: Logger;
  heard(payload: string): void;
  /** It listens, for the first time or again: what was notified before was not heard. */
  connected(): void;
}

const CHECK_EVERY_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;

export function listenToChannel(options: ChannelListenerOptions): ChannelListener {
  const { url, channel, logger, heard, connected } = options;
  const closing = new AbortController();
  let listening = false;
  let failures = 0;

  async function listenUntilBroken(): Promise<void> {
    const broken = new AbortController();
    const client = new pg.Client({
      connectionString: url,
      application_name: 'agent-email-signals',
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on('error', (error) => broken.abort(error));
    client.on('end', () => broken.abort(new Error('The connection ended')));
    client.on('notification', ({ payload = '' }) => heard(payload));
    const stopped = AbortSignal.any([broken.signal, closing.signal]);
    try {
      await client.connect();
      await client.query(`listen ${client.escapeIdentifier(channel)}`);
      for (;;) {
        await hearOneself(client, channel, stopped);
        if (!listening) connected();
        listening = true;
        failures = 0;
        await pause(CHECK_EVERY_MS, undefined, { signal: stopped, ref: false });
      }
    } catch (error) {
      throw broken.signal.aborted ? broken.signal.reason : error;
    } finally {
      listening = false;
      // A peer that is gone answers no farewell.
      await Promise.race([client.end().catch(() => undefined), pause(1_000, undefined, { ref: false })]);
    }
  }

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      await listenUntilBroken().catch((error: unknown) => {
        if (!closing.signal.aborted) logger.warn({ err: error, channel }, 'listening was cut, trying again');
      });
      const ceiling = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
      failures += 1;
      const delay = ceiling * (0.5 + Math.random() / 2);
      await pause(delay, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
    }
  }

  const ended = keepListening();
  return {
    get listening() {
      return listening;
    },
    async close() {
      closing.abort();
      await ended;
    },
  };
}

/** A connection may stand and hear nothing: half open, or a pooler's. Only what came back shows that it hears. */
async function hearOneself(client: pg.Client, channel: string, stopped: AbortSignal): Promise<void> {
  const token = randomUUID();
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = ({ payload }: pg.Notification) => {
    if (payload === token) resolve();
  };
  client.on('notification', look);
  try {
    await client.query('select pg_notify($1, $2)', [channel, token]);
    await Promise.race([promise, silence(stopped)]);
  } finally {
    client.off('notification', look);
  }
}

async function silence(stopped: AbortSignal): Promise<never> {
  await pause(ANSWER_TIMEOUT_MS, undefined, { signal: stopped, ref: false });
  throw new Error('Notifications do not come through: is there a pooler in between?');
}
