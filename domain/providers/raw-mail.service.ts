import type { Readable } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import type { MailIntake } from './mail-intake.service.ts';
import {
  invalidSignature,
  type RawEnvelope,
  type RawSignature,
  verifyRawSignature,
} from './raw-signature.ts';

export interface RawMailService {
  /**
   * Takes a raw mail from a server that shares our secret. Resolves once the mail is stored and its receipts are
   * committed; a repeat has the same result and no further effect.
   *
   * @throws AppError `unauthenticated`, `not_found` where none of the recipients is ours, `usage_limit_exceeded` where one
   * may receive no more for now (the mail is to be handed over again later), and what the intake throws.
   */
  take(
    envelope: RawEnvelope,
    signature: RawSignature,
    source: Readable,
  ): Promise<{ accepted: string[]; unknown: string[] }>;
}

export function createRawMailService({
  intake,
  secret,
}: {
  intake: MailIntake;
  /** Without one nothing is accepted. */
  secret: string | undefined;
}): RawMailService {
  return {
    async take(envelope, signature, source) {
      if (secret === undefined) throw notConfigured();
      verifyRawSignature(secret, envelope, signature, new Date());
      const { recipients, unknown, full } = await intake.resolve(envelope.rcptTo, envelope.mailFrom);
      if (recipients.length === 0 && full.length === 0) throw noRecipients();
      const transportId = envelope.id === '' ? `raw:${signature.signature}` : `raw-id:${envelope.id}`;
      if (full.length > 0 && !(await intake.hasReceived(transportId, full))) throw receiveLimitReached();
      await intake.take({
        transportId: transportId,
        source,
        mailFrom: envelope.mailFrom,
        clientIp: envelope.clientIp,
        helo: envelope.helo || null,
        recipients: [...recipients, ...full],
        inspect(stored) {
          if (stored.sha256.toString('hex') !== signature.contentSha256.toLowerCase())
            throw invalidSignature('is over other bytes than came');
        },
      });
      return { accepted: [...recipients, ...full].map(({ address }) => address), unknown };
    },
  };
}

function notConfigured(): AppError {
  return new AppError('not_found', {
    detail: 'This service takes no raw mail.',
    fix: 'Set PROVIDER_RAW_SECRET and WORKER_DATABASE_URL for the API.',
  });
}

function receiveLimitReached(): AppError {
  return new AppError('usage_limit_exceeded', {
    detail: 'A recipient has used up the mail it may receive.',
    fix: 'Keep the mail and hand it over again later: 452 4.2.2 to its sender.',
    extensions: { counter: 'messages_received' },
  });
}

function noRecipients(): AppError {
  return new AppError('not_found', {
    detail: 'None of the recipients has an inbox here.',
    fix: 'Refuse the mail to its sender: 550 5.1.1.',
  });
}
