import type { Readable } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import type { MailIntake } from './mail-intake.service.ts';
import {
  invalidSignature,
  type RawEnvelope,
  type RawSignature,
  verifyRawSignature,
} from './raw-signature.ts';

export type RawMailService = ReturnType<typeof createRawMailService>;

export function createRawMailService({
  intake,
  secret,
}: {
  intake: MailIntake;
  /** If undefined, every request is rejected. */
  secret: string | undefined;
}) {
  return {
    /**
     * Accepts a raw message from a server that shares the secret. Resolves once the message is stored and its receipts
     * are committed. Idempotent.
     *
     * @throws AppError `unauthenticated`; `not_found` if no recipient has an inbox; `usage_limit_exceeded` if one has
     * reached its receive limit (the server should retry later); errors of {@link MailIntake}.
     */
    async accept(
      envelope: RawEnvelope,
      signature: RawSignature,
      source: Readable,
    ): Promise<{ accepted: string[]; unknown: string[] }> {
      if (secret === undefined) throw notConfigured();
      verifyRawSignature(secret, envelope, signature, new Date());
      const { recipients, unknown, overLimit } = await intake.resolve(envelope.rcptTo, envelope.mailFrom);
      if (recipients.length === 0 && overLimit.length === 0) throw noRecipients();
      const transportId = envelope.id === '' ? `raw:${signature.signature}` : `raw-id:${envelope.id}`;
      if (overLimit.length > 0 && !(await intake.hasReceived(transportId, overLimit)))
        throw receiveLimitReached();
      const accepting = await intake.accept({
        transportId,
        source,
        mailFrom: envelope.mailFrom,
        clientIp: envelope.clientIp,
        helo: envelope.helo || null,
        recipients: [...recipients, ...overLimit],
        inspect(stored) {
          if (stored.sha256.toString('hex') !== signature.contentSha256.toLowerCase())
            throw invalidSignature('does not match the received bytes');
        },
      });
      const accepted = accepting.map(({ address }) => address);
      const refused = [...recipients, ...overLimit].filter(({ address }) => !accepted.includes(address));
      return { accepted, unknown: [...unknown, ...refused.map(({ address }) => address)] };
    },
  };
}

function notConfigured(): AppError {
  return new AppError('not_found', {
    detail: 'This service does not accept raw mail.',
    fix: 'Set PROVIDER_RAW_SECRET and WORKER_DATABASE_URL for the API.',
  });
}

function receiveLimitReached(): AppError {
  return new AppError('usage_limit_exceeded', {
    detail: 'A recipient has reached its receive limit.',
    fix: 'Retry later: reply 452 4.2.2 to the sender.',
    extensions: { counter: 'messages_received' },
  });
}

function noRecipients(): AppError {
  return new AppError('not_found', {
    detail: 'None of the recipients has an inbox here.',
    fix: 'Reject the message: 550 5.1.1.',
  });
}
