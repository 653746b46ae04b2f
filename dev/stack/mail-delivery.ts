import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodemailerError } from 'nodemailer';
import { createTransport } from 'nodemailer';
import type { Log } from './child-process.ts';
import type { SimulatedOutcome } from './simulated-outcome.ts';

export interface Hop {
  /** For log lines. */
  name: string;
  host: string;
  port: number;
  /** Delays between tries; the message fails after the last. Default: about two minutes in total. */
  retryDelaysMs?: number[] | undefined;
}

export interface Envelope {
  from: string;
  to: string[];
}

export interface Delivery {
  /**
   * Delivers a message by SMTP, with retries while the hop is down or replies 4xx.
   *
   * @returns the outcome; undefined if `close` was called first.
   */
  deliver(envelope: Envelope, open: () => Readable): Promise<SimulatedOutcome | undefined>;
  close(): void;
}

/** Long enough for a listener to restart. */
const RETRY_DELAYS_MS = [100, 250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000];

export function createDelivery(hop: Hop, log: Log): Delivery {
  const transport = createTransport({
    pool: true,
    host: hop.host,
    port: hop.port,
    name: 'relay.localhost',
    maxConnections: 10,
    // Both ends are on the loopback; a listener's certificate for its public name would not match.
    ignoreTLS: true,
    connectionTimeout: 5000,
    socketTimeout: 60_000,
  });
  const closing = new AbortController();

  async function attempt(envelope: Envelope, open: () => Readable): Promise<SimulatedOutcome> {
    try {
      const info = await transport.sendMail({ envelope: { ...envelope }, raw: open() });
      return { action: 'relayed', status: '2.0.0', diagnostic: info.response };
    } catch (error) {
      const { responseCode, response, message } = error as NodemailerError;
      const diagnostic = (response ?? message).replace(/\s+/g, ' ');
      const status = /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(diagnostic)?.[1];
      if (responseCode !== undefined && responseCode >= 500)
        return { action: 'failed', status: status ?? '5.0.0', diagnostic };
      return { action: 'delayed', status: status ?? '4.4.1', diagnostic };
    }
  }

  return {
    async deliver(envelope, open) {
      for (const delayMs of [...(hop.retryDelaysMs ?? RETRY_DELAYS_MS), 0]) {
        const fate = await attempt(envelope, open);
        if (closing.signal.aborted) return fate.action === 'delayed' ? undefined : fate;
        if (fate.action !== 'delayed') return fate;
        if (delayMs === 0) return { ...fate, action: 'failed', status: '4.4.7' };
        log(`${hop.name} did not take a mail (${fate.diagnostic}); next try in ${delayMs} ms`);
        const slept = await sleep(delayMs, true, { signal: closing.signal }).catch(() => false);
        if (!slept) return undefined;
      }
      return undefined;
    },
    close() {
      closing.abort();
      transport.close();
    },
  };
}
