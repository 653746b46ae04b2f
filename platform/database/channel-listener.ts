import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';

/** Receives the notifications of a PostgreSQL channel over one connection, and reconnects whenever it breaks. */
export interface ChannelListener {
  /** Whether the connection is open and delivered a notification within the last {@link CHECK_INTERVAL_MS}. */
  readonly listening: boolean;
  close(): Promise<void>;
}

export interface ChannelListenerOptions {
  /** Must connect directly to PostgreSQL: a transaction pooler delivers no notifications. */
  url: string;
  channel: string;
  logger: Logger;
  onNotification(payload: string): void;
  /** Called when listening begins and after each reconnect, because notifications sent before that are lost. */
  onConnected(): void;
}

const CHECK_INTERVAL_MS = 10_000;
const RESPONSE_TIMEOUT_MS = 5_000;
const MIN_RECONNECT_DELAY_MS = 50;
const MAX_RECONNECT_DELAY_MS = 5_000;

export function listenToChannel(options: ChannelListenerOptions): ChannelListener {
  const { url, channel, logger, onNotification, onConnected } = options;
  const closing = new AbortController();
  let listening = false;
  let failures = 0;

  async function listenUntilBroken(): Promise<void> {
    const broken = new AbortController();
    const client = new pg.Client({
      connectionString: url,
      application_name: 'agent-email-signals',
      connectionTimeoutMillis: RESPONSE_TIMEOUT_MS,
      query_timeout: RESPONSE_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on('error', (error) => broken.abort(error));
    client.on('end', () => broken.abort(new Error('The connection ended')));
    client.on('notification', ({ payload = '' }) => onNotification(payload));
    const stopped = AbortSignal.any([broken.signal, closing.signal]);
    try {
      await client.connect();
      await client.query(`listen ${client.escapeIdentifier(channel)}`);
      for (;;) {
        await verifyDelivery(client, channel, stopped);
        if (!listening) onConnected();
        listening = true;
        failures = 0;
        await sleep(CHECK_INTERVAL_MS, undefined, { signal: stopped, ref: false });
      }
    } catch (error) {
      throw broken.signal.aborted ? broken.signal.reason : error;
    } finally {
      listening = false;
      // A dead peer does not respond to the termination message.
      await Promise.race([client.end().catch(() => undefined), sleep(1_000, undefined, { ref: false })]);
    }
  }

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      await listenUntilBroken().catch((error: unknown) => {
        if (!closing.signal.aborted)
          logger.warn({ err: error, channel }, 'listening was interrupted, reconnecting');
      });
      const ceiling = Math.min(MAX_RECONNECT_DELAY_MS, MIN_RECONNECT_DELAY_MS * 2 ** failures);
      failures += 1;
      const delay = ceiling * (0.5 + Math.random() / 2);
      await sleep(delay, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
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

/** Sends a notification to itself: a half-open connection, or a pooler's, looks healthy but receives nothing. */
async function verifyDelivery(client: pg.Client, channel: string, stopped: AbortSignal): Promise<void> {
  const token = randomUUID();
  const { promise, resolve } = Promise.withResolvers<void>();
  const onNotification = ({ payload }: pg.Notification) => {
    if (payload === token) resolve();
  };
  client.on('notification', onNotification);
  try {
    await client.query('select pg_notify($1, $2)', [channel, token]);
    await Promise.race([promise, rejectAfterTimeout(stopped)]);
  } finally {
    client.off('notification', onNotification);
  }
}

async function rejectAfterTimeout(stopped: AbortSignal): Promise<never> {
  await sleep(RESPONSE_TIMEOUT_MS, undefined, { signal: stopped, ref: false });
  throw new Error('Notifications are not delivered: is there a pooler in between?');
}
