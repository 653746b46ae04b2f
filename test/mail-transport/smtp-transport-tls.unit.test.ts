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

/** Issued by itself, for 127.0.0.1. */
const CERTIFICATE_FILE = new URL('relay.cert.pem', import.meta.url).pathname;
const cert = readFileSync(CERTIFICATE_FILE);
const key = readFileSync(new URL('relay.key.pem', import.meta.url));
/** For another host. */
const foreign = {
  cert: readFileSync(new URL('../egress/receiver.cert.pem', import.meta.url)),
  key: readFileSync(new URL('../egress/receiver.key.pem', import.meta.url)),
  caFile: new URL('../egress/receiver.cert.pem', import.meta.url).pathname,
};
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
    SMTP_RELAY_INSECURE_AUTH: false,
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

  const CREDENTIALS = { SMTP_RELAY_USER: 'service', SMTP_RELAY_PASSWORD: 'right' };
  const TRUSTED = { SMTP_RELAY_TLS_CA_FILE: CERTIFICATE_FILE };

  test.each(['opportunistic', 'required', 'implicit'] as const)(
    'receives the credentials over %s TLS with a certificate that is verified',
    async (tls) => {
      const { port, received } = await relay({ authOptional: false, secure: tls === 'implicit' });
      const config = { ...CREDENTIALS, ...TRUSTED, SMTP_RELAY_TLS: tls };
      expect(await transmit(port, config)).toMatchObject({ kind: 'accepted' });
      expect(received[0]?.session).toEqual({ secure: true, user: 'service' });
    },
  );

  test.each<[string, SMTPServerOptions, Partial<SmtpTransportConfig>]>([
    ['no TLS', { disabledCommands: ['STARTTLS'], allowInsecureAuth: true }, TRUSTED],
    ['an untrusted certificate', {}, {}],
    ['a certificate for another host', foreign, { SMTP_RELAY_TLS_CA_FILE: foreign.caFile }],
  ])('never receives the credentials with %s', async (_name, options, config) => {
    const logins: string[] = [];
    const { port, received } = await relay({
      ...options,
      onAuth({ username }, _session, done) {
        logins.push(String(username));
        done(null, { user: username });
      },
    });
    for (const tls of ['opportunistic', 'required'] as const) {
      const result = await transmit(port, { ...CREDENTIALS, ...config, SMTP_RELAY_TLS: tls });
      expect(result).toMatchObject({ kind: 'deferred' });
    }
    expect([logins, received]).toEqual([[], []]);
  });

  test('receives the credentials without TLS only if that is configured', async () => {
    const { port, received } = await relay({ authOptional: false, allowInsecureAuth: true });
    const config = { ...CREDENTIALS, SMTP_RELAY_TLS: 'none' as const };
    await expect(transmit(port, config)).rejects.toThrow(/^SMTP_RELAY_TLS=none would send/);
    const insecure = { ...config, SMTP_RELAY_INSECURE_AUTH: true };
    expect(await transmit(port, insecure)).toMatchObject({ kind: 'accepted' });
    expect(received[0]?.session).toEqual({ secure: false, user: 'service' });
  });

  test('needs a user and a password', async () => {
    await expect(transmit(25, { SMTP_RELAY_USER: 'service' })).rejects.toThrow(/must be set together/);
  });

  test('defers messages while the password is wrong or missing', async () => {
    const { port, received } = await relay({ authOptional: false });
    const wrong = { ...CREDENTIALS, ...TRUSTED, SMTP_RELAY_PASSWORD: 'wrong' };
    expect(await transmit(port, wrong)).toMatchObject({ kind: 'deferred' });
    expect(await transmit(port, {})).toMatchObject({ kind: 'deferred' });
    expect(received).toEqual([]);
  });
});
