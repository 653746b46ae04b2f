import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach } from '@jest/globals';
import { pino } from 'pino';
import type { AcceptedMail, InboundRoute } from '../../domain/inbound/inbound-routes.ts';
import {
  type InboundListenerConfig,
  type InboundListenerOptions,
  startInboundListener,
} from '../../workers/inbound-listener.ts';
import { RawSmtpClient } from './raw-smtp-client.ts';

export const ROUTE = {
  kind: 'mail',
  organizationId: 'org_1',
  environmentId: 'env_1',
  inboxId: 'inb_1',
} satisfies InboundRoute;
/** Default size limit of a listener. */
export const SMALL = 200_000;

type Doubles = Pick<InboundListenerOptions, 'storage' | 'receipts'>;

/** Runs after each test of a file that calls {@link cleanUpAfterEach}, in reverse order. */
export const cleanUps: (() => Promise<unknown> | unknown)[] = [];
export function cleanUpAfterEach(): void {
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });
}

/** A listener with in-memory storage. Addresses of agents.test exist unless they start with `nobody`. */
export async function listen(
  overrides: {
    config?: Partial<InboundListenerConfig>;
    storage?: Partial<Doubles['storage']>;
    receipts?: Partial<Doubles['receipts']>;
    limits?: Pick<InboundListenerOptions, 'largeMessageSlots' | 'largeMessageTimeoutMs' | 'dataRate'>;
    onAnswered?: InboundListenerOptions['onReply'];
    reportRefusal?: InboundListenerOptions['reportRefusal'];
    metrics?: NonNullable<InboundListenerOptions['metrics']>;
    certificateCheckMs?: number;
  } = {},
) {
  const objects = new Map<string, Buffer>();
  const committed: AcceptedMail[] = [];
  const logged: { level: number; msg: string }[] = [];
  const storage: Doubles['storage'] = {
    async putStream(key: string, source: Readable) {
      const bytes = await buffer(source);
      objects.set(key, bytes);
      return { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest() };
    },
    async delete(key: string) {
      objects.delete(key);
    },
    ...overrides.storage,
  };
  const receipts: Doubles['receipts'] = {
    resolve: async (address) => (/^(?!nobody).*@agents\.test$/.test(address) ? ROUTE : 'unknown'),
    checkSender: async () => 'authenticated',
    commit: async (mail) => {
      committed.push(mail);
    },
    ...overrides.receipts,
  };
  const listener = await startInboundListener({
    config: {
      MAIL_DOMAIN: 'agents.test',
      INBOUND_SMTP_HOST: '127.0.0.1',
      INBOUND_SMTP_PORT: 0,
      INBOUND_SMTP_MAX_CONNECTIONS: 50,
      INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 50,
      INBOUND_MAX_SIZE_BYTES: SMALL,
      ...overrides.config,
    },
    storage,
    receipts,
    logger: pino({}, { write: (line) => void logged.push(JSON.parse(line)) }),
    ...overrides.limits,
    ...(overrides.reportRefusal ? { reportRefusal: overrides.reportRefusal } : {}),
    ...(overrides.metrics ? { metrics: overrides.metrics } : {}),
    ...(overrides.certificateCheckMs ? { certificateCheckMs: overrides.certificateCheckMs } : {}),
    ...(overrides.onAnswered ? { onReply: overrides.onAnswered } : {}),
  });
  cleanUps.push(() => listener.close());
  return { listener, objects, committed, logged };
}

export async function greeted(port: number, localAddress?: string): Promise<RawSmtpClient> {
  const client = await RawSmtpClient.greeted(port, localAddress);
  cleanUps.push(() => client.close());
  return client;
}
