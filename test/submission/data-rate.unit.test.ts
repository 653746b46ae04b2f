import { connect } from 'node:tls';
import { afterEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { findFreePort } from '../../dev/stack/ports.ts';
import type { SubmissionService } from '../../domain/outbound/submission.service.ts';
import { type SubmissionListener, startSubmissionListener } from '../../workers/submission-listener.ts';
import { RawSmtpClient } from '../inbound/raw-smtp-client.ts';

let listener: SubmissionListener | undefined;
let client: RawSmtpClient | undefined;
afterEach(async () => {
  client?.close();
  await listener?.close();
});

const submissions: SubmissionService = {
  authenticate: async () => ({
    inboxId: 'inb_1',
    email: 'agent@mail.test',
    rotatedAt: new Date(),
    scope: {
      organizationId: 'org_1',
      environmentId: 'env_1',
      environmentBound: true,
      requestId: 'req_1',
      permissions: new Set(),
      actor: { kind: 'system', id: 'inb_1' },
    },
  }),
  maySendAs: () => true,
  async submit(_submitter, { raw }) {
    for await (const _chunk of raw);
    return 'msg_1';
  },
};

test('disconnects a client that drips a large message', async () => {
  const port = await findFreePort();
  listener = await startSubmissionListener({
    config: {
      NODE_ENV: 'test',
      MAIL_DOMAIN: 'mail.test',
      SUBMISSION_SMTP_HOST: '127.0.0.1',
      SUBMISSION_SMTP_PORT: 0,
      SUBMISSION_SMTP_TLS_PORT: port,
      INBOUND_SMTP_MAX_CONNECTIONS: 10,
      INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 10,
      INBOUND_MAX_SIZE_BYTES: 4 * 1024 * 1024,
    },
    submissions,
    logger: pino({ level: 'silent' }),
    dataRate: { windowMs: 300, minBytes: 100, minLargeBytes: 20_000 },
  });
  // The development certificate.
  client = await RawSmtpClient.greeted(connect({ host: '127.0.0.1', port, rejectUnauthorized: false }));
  const login = Buffer.from('\0agent@mail.test\0secret').toString('base64');
  expect(await client.command(`AUTH PLAIN ${login}`)).toMatch(/^235/);
  expect(await client.startData('bob@people.example')).toMatch(/^354/);
  const { socket } = client;
  socket.write(`Subject: slow\r\n\r\n${`${'x'.repeat(998)}\r\n`.repeat(2_000)}`);
  const timer = setInterval(() => socket.write('x'.repeat(200)), 20);
  socket.once('close', () => clearInterval(timer));
  expect(await client.reply()).toBe('421 4.4.2 Data arrives too slowly, closing connection');
  expect(await client.reply()).toBe('closed');
});
