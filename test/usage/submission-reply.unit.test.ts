import { afterEach, expect, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { pino } from 'pino';
import type { SubmissionService } from '../../domain/outbound/submission.service.ts';
import { usageLimitExceeded } from '../../domain/usage/limit-errors.ts';
import { type SubmissionListener, startSubmissionListener } from '../../workers/submission-listener.ts';

let listener: SubmissionListener | undefined;
afterEach(() => listener?.close());

test('answers submissions over the limit with 452, which mail clients retry', async () => {
  const limit = { limit: 3_000, kind: 'hard', source: 'tier', enforcedLimit: 3_000 } as const;
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
      throw usageLimitExceeded('messages_sent', limit, new Date('2026-11-21T00:00:00Z'));
    },
  };
  listener = await startSubmissionListener({
    config: {
      NODE_ENV: 'test',
      MAIL_DOMAIN: 'mail.test',
      SUBMISSION_SMTP_HOST: '127.0.0.1',
      SUBMISSION_SMTP_PORT: 0,
      SUBMISSION_SMTP_TLS_PORT: 0,
      INBOUND_SMTP_MAX_CONNECTIONS: 10,
      INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: 10,
      INBOUND_MAX_SIZE_BYTES: 100_000,
    },
    submissions,
    logger: pino({ level: 'silent' }),
  });
  const program = nodemailer.createTransport({
    host: '127.0.0.1',
    port: listener.port,
    requireTLS: true,
    // The development certificate.
    tls: { rejectUnauthorized: false },
    auth: { user: 'agent@mail.test', pass: 'secret' },
  });
  try {
    const sending = program.sendMail({ from: 'agent@mail.test', to: 'bob@people.example', text: 'Hello' });
    await expect(sending).rejects.toMatchObject({
      responseCode: 452,
      response: expect.stringMatching(/^452 4\.3\.1 The organization has used all 3000 messages_sent/),
    });
  } finally {
    program.close();
  }
});
