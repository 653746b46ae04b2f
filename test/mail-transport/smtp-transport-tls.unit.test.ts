import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import {
  createSmtpTransport,
  type SmtpTransportConfig,
} from '../../platform/mail-transport/smtp-transport.ts';

const cert = readFileSync(new URL('../egress/receiver.cert.pem', import.meta.url));
const key = readFileSync(new URL('../egress/receiver.key.pem', import.meta.url));
const RAW = Buffer.from('Subject: caf\xe9\r\n\r\n.dot\r\n', 'latin1');

interface Received {
  session: Pick<SMTPServerSession, 'secure' | 'user'>;
  raw: Buffer;
}

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function relay(options: SMTPServerOptions) {
  const received: Received[] = [];
  const server = new SMTPServer({
    cert,
    key,
    hideDSN: false,
    authOptional: true,
    closeTimeout: 100,
    onAuth: ({ username, password }, _session, done) =>
      password === 'right' ? done(null, { user: username }) : done(new Error('wrong password')),
    async onData(stream, { secure, user }, done) {
      received.push({ session: { secure, user }, raw: await buffer(stream) });
      done(null, 'OK: queued as RELAY1');
    },
    ...options,
  });
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  cleanUps.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, received };
}

async function transmit(port: number, config: Partial<SmtpTransportConfig>) {
  const transport = createSmtpTransport({
    SMTP_RELAY_HOST: '127.0.0.1',
    SMTP_RELAY_PORT: port,
    SMTP_RELAY_TLS: 'opportunistic',
    SMTP_RELAY_POOL_SIZE: 1,
    MAIL_DOMAIN: 'agents.test',
    ...config,
  });
  const result = await transport.transmit({
    sender: 'bounces+token@bounces.agents.test',
    recipient: 'someone@example.com',
    openRaw: async () => Readable.from([RAW]),
    sizeBytes: RAW.length,
    envelopeId: 'msg_1.0',
  });
  await transport.close();
  return result;
}

describe('a relay with TLS and authentication', () => {
  test('is used with opportunistic TLS despite an untrusted certificate', async () => {
    const { port, received } = await relay({});
    expect(await transmit(port, {})).toMatchObject({
      kind: 'accepted',
      providerMessageId: 'RELAY1',
      reportsDelivery: true,
    });
    expect(received).toEqual([{ session: { secure: true, user: false }, raw: RAW }]);
  });

  test('is used without TLS with the mode none', async () => {
    const { port, received } = await relay({});
    expect(await transmit(port, { SMTP_RELAY_TLS: 'none' })).toMatchObject({ kind: 'accepted' });
    expect(received[0]?.session.secure).toBe(false);
  });

  test.each([['required'], ['implicit']] as const)(
    'is rejected for %s TLS with an untrusted certificate',
    async (tls) => {
      const { port, received } = await relay({ secure: tls === 'implicit' });
      expect(await transmit(port, { SMTP_RELAY_TLS: tls })).toMatchObject({
        kind: 'deferred',
        statusCode: null,
      });
      expect(received).toEqual([]);
    },
  );

  test('receives the configured credentials', async () => {
    const { port, received } = await relay({ authOptional: false });
    const user = { SMTP_RELAY_USER: 'service', SMTP_RELAY_PASSWORD: 'right' };
    expect(await transmit(port, user)).toMatchObject({ kind: 'accepted' });
    expect(received[0]?.session.user).toBe('service');
  });

  test('defers messages while the password is wrong or missing', async () => {
    const { port, received } = await relay({ authOptional: false });
    const wrong = { SMTP_RELAY_USER: 'service', SMTP_RELAY_PASSWORD: 'wrong' };
    expect(await transmit(port, wrong)).toMatchObject({ kind: 'deferred' });
    expect(await transmit(port, {})).toMatchObject({ kind: 'deferred' });
    expect(received).toEqual([]);
  });
});
