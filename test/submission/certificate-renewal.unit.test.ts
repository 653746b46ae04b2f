import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { generate } from 'selfsigned';
import { findFreePort } from '../../dev/stack/ports.ts';
import type { SubmissionService } from '../../domain/outbound/submission.service.ts';
import { createServiceMetrics } from '../../platform/service-metrics.ts';
import { startSubmissionListener } from '../../workers/submission-listener.ts';
import { RawSmtpClient } from '../inbound/raw-smtp-client.ts';
import { cleanUpAfterEach, cleanUps, listen } from '../inbound/test-listener.ts';
import { eventually } from '../support/eventually.ts';

type Pem = Awaited<ReturnType<typeof generate>>;
const DAY_MS = 86_400_000;

let first: Pem;
let second: Pem;
beforeAll(async () => {
  const create = (name: string, days: number) =>
    generate([{ name: 'commonName', value: name }], {
      keySize: 2048,
      notAfterDate: new Date(Date.now() + days * DAY_MS),
    });
  [first, second] = await Promise.all([create('first.test', 10), create('second.test', 90)]);
});

let directory: string;
cleanUpAfterEach();
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Files of a certificate, in a folder of their own. */
async function createFiles() {
  directory = await mkdtemp(join(tmpdir(), 'certificate-'));
  const [keyFile, certFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  /** Replaces a file as certbot does: a reader sees the old one or the new one. */
  const replace = async (file: string, text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  return {
    keyFile,
    certFile,
    write: async ({ private: key, cert }: Pick<Pem, 'private' | 'cert'>) => {
      await replace(keyFile, key);
      await replace(certFile, cert);
    },
  };
}

const nameOf = (socket: ReturnType<typeof connect>) => socket.getPeerCertificate().subject.CN;

/** Upgrades a connection by STARTTLS. */
async function startTls(port: number): Promise<{ name: string | undefined; client: RawSmtpClient }> {
  const plain = await RawSmtpClient.greeted(port);
  expect(await plain.command('STARTTLS')).toMatch(/^220/);
  plain.socket.removeAllListeners('data');
  const socket = connect({ socket: plain.socket, rejectUnauthorized: false });
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  const name = String(nameOf(socket));
  const client = new RawSmtpClient(socket);
  cleanUps.push(() => client.close());
  expect(await client.command('EHLO sender.test')).toMatch(/^250/);
  return { name, client };
}

async function readGauges(metrics: ReturnType<typeof createServiceMetrics>) {
  const { expiry, unusable } = metrics.tlsCertificates;
  const [expires, broken] = await Promise.all([expiry.get(), unusable.get()]);
  return {
    daysLeft: Math.round(((expires.values[0]?.value ?? 0) * 1_000 - Date.now()) / DAY_MS),
    unusable: broken.values[0]?.value,
  };
}

test('the inbound listener uses a renewed certificate, and keeps connections and the old one if it is broken', async () => {
  const files = await createFiles();
  await files.write(first);
  const metrics = createServiceMetrics();
  const { listener } = await listen({
    config: { INBOUND_SMTP_TLS_KEY_FILE: files.keyFile, INBOUND_SMTP_TLS_CERT_FILE: files.certFile },
    metrics,
    certificateCheckMs: 20,
  });
  const before = await startTls(listener.port);
  expect(before.name).toBe('first.test');
  expect(await readGauges(metrics)).toEqual({ daysLeft: 10, unusable: 0 });

  for (const broken of [
    { private: first.private, cert: second.cert },
    { private: '', cert: '' },
    { private: first.private, cert: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
  ]) {
    await files.write(broken);
    await eventually(async () => expect(await readGauges(metrics)).toEqual({ daysLeft: 10, unusable: 1 }));
    expect((await startTls(listener.port)).name).toBe('first.test');
  }

  await files.write(second);
  await eventually(async () => expect(await readGauges(metrics)).toEqual({ daysLeft: 90, unusable: 0 }));
  expect((await startTls(listener.port)).name).toBe('second.test');
  expect(await before.client.command('NOOP')).toMatch(/^250/);
  expect(await before.client.startData('agent@agents.test')).toMatch(/^354/);
});

test('the submission listener does so for STARTTLS and for implicit TLS', async () => {
  const files = await createFiles();
  await files.write(first);
  const metrics = createServiceMetrics();
  const tlsPort = await findFreePort();
  const listener = await startSubmissionListener({
    config: {
      NODE_ENV: 'production',
      MAIL_DOMAIN: 'mail.test',
      SUBMISSION_SMTP_HOST: '127.0.0.1',
      SUBMISSION_SMTP_PORT: 0,
      SUBMISSION_SMTP_TLS_PORT: tlsPort,
      SUBMISSION_SMTP_TLS_KEY_FILE: files.keyFile,
      SUBMISSION_SMTP_TLS_CERT_FILE: files.certFile,
      INBOUND_SMTP_MAX_CONNECTIONS: 10,
      INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 10,
      INBOUND_MAX_SIZE_BYTES: 1_000_000,
    },
    submissions: {} as SubmissionService,
    logger: pino({ level: 'silent' }),
    metrics,
    certificateCheckMs: 20,
  });
  cleanUps.push(() => listener.close());
  const connectTls = async () => {
    const socket = connect({ host: '127.0.0.1', port: tlsPort, rejectUnauthorized: false });
    const client = await RawSmtpClient.greeted(socket);
    cleanUps.push(() => client.close());
    return { name: nameOf(socket), client };
  };
  const [before, upgraded] = [await connectTls(), await startTls(listener.port)];
  expect([before.name, upgraded.name]).toEqual(['first.test', 'first.test']);
  await files.write(second);
  await eventually(async () => expect(await readGauges(metrics)).toEqual({ daysLeft: 90, unusable: 0 }));
  expect([(await connectTls()).name, (await startTls(listener.port)).name]).toEqual([
    'second.test',
    'second.test',
  ]);
  for (const { client } of [before, upgraded]) expect(await client.command('NOOP')).toMatch(/^250/);
});

test('a listener does not start with a key of another certificate', async () => {
  const files = await createFiles();
  await files.write({ private: first.private, cert: second.cert });
  const config = { INBOUND_SMTP_TLS_KEY_FILE: files.keyFile, INBOUND_SMTP_TLS_CERT_FILE: files.certFile };
  await expect(listen({ config })).rejects.toThrow();
});
