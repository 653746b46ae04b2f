import { Readable } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import { SesObjectError, type SesObjects } from '../../platform/ses-objects.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import type { MailIntake, ProviderMail } from './mail-intake.service.ts';
import type { SesMail } from './ses-mail.ts';

export interface SesMailService {
  /**
   * Takes in a mail SES received. Resolves once it is stored and its receipts are committed; a repeat has no further
   * effect.
   *
   * @returns `ignored` where nobody here has any of its recipients.
   * @throws AppError `permission_denied` (a bucket that is not on our list), `unprocessable` (a mail that cannot be
   * read), `unavailable` (SNS should try again, also where a recipient may receive no more for now), and what the intake throws.
   */
  take(mail: SesMail): Promise<'stored' | 'ignored'>;
}

export interface SesMailServiceOptions {
  intake: MailIntake;
  objects: Pick<SesObjects, 'open'>;
  buckets: string[];
  /** For the log: SES has accepted the mail, so nobody else learns of it. */
  onUnknownRecipients(sesMessageId: string, recipients: string[]): void;
}

export function createSesMailService(options: SesMailServiceOptions): SesMailService {
  const { intake, buckets, onUnknownRecipients: onUnknown } = options;
  return {
    async take(mail) {
      const { sesMessageId, mailFrom, content } = mail;
      if (content === null) throw missingContent();
      if (content.kind === 'object' && !buckets.includes(content.bucket)) throw unknownBucket();
      const { recipients, unknown, full } = await intake.resolve(mail.recipients, mailFrom);
      if (unknown.length > 0) onUnknown(sesMessageId, unknown);
      if (recipients.length === 0 && full.length === 0) return 'ignored';
      const transportId = `ses:${sesMessageId}`;
      // Asked before anything is read; SNS repeats what it had no answer to in 15 seconds.
      if (recipients.length > 0 && !(await intake.hasReceived(transportId, recipients)))
        await takeForRecipients(options, { ...mail, content }, { transportId, recipients });
      // The others have it now; SNS comes again for those who may receive no more at the moment.
      if (full.length > 0 && !(await intake.hasReceived(transportId, full))) throw receiveLimitReached();
      return 'stored';
    },
  };
}

async function takeForRecipients(
  { intake, objects }: SesMailServiceOptions,
  mail: SesMail & { content: NonNullable<SesMail['content']> },
  handed: Pick<ProviderMail, 'transportId' | 'recipients'>,
): Promise<void> {
  const { content, mailFrom, receivedAt, verdicts } = mail;
  const source =
    content.kind === 'inline' ? Readable.from([content.bytes]) : await openObject(objects, content);
  try {
    await intake.take({
      ...handed,
      source,
      mailFrom,
      clientIp: '',
      helo: null,
      ...(receivedAt ? { receivedAt } : {}),
      verdicts,
    });
  } catch (error) {
    if (isUsageLimitExceeded(error)) throw receiveLimitReached();
    throw error instanceof AppError ? error : temporaryFailure(error);
  } finally {
    // What was not read to its end holds a connection.
    source.destroy();
  }
}

/** Not 429: SNS repeats what a server could not do for now. */
function receiveLimitReached(): AppError {
  return new AppError('unavailable', {
    detail: 'A recipient has used up the mail it may receive.',
    fix: 'Try again later.',
  });
}

async function openObject(
  objects: SesMailServiceOptions['objects'],
  { bucket, key }: { bucket: string; key: string },
): Promise<Readable> {
  try {
    return await objects.open(bucket, key);
  } catch (error) {
    if (error instanceof SesObjectError && error.failure === 'encrypted') throw encryptedMail();
    throw temporaryFailure(error);
  }
}

function missingContent(): AppError {
  return new AppError('unprocessable', {
    detail: 'The notification holds no mail and names no object.',
    fix: 'Let the receipt rule deliver to S3, with this topic, or to SNS with its content.',
  });
}

function unknownBucket(): AppError {
  return new AppError('permission_denied', {
    detail: 'The bucket is not one of ours.',
    fix: 'Add its name to SES_INBOUND_BUCKETS.',
  });
}

function encryptedMail(): AppError {
  return new AppError('unprocessable', {
    detail: 'SES encrypted the mail with a key only its reader has.',
    fix: 'Take message encryption out of the receipt rule; the bucket itself may be encrypted.',
  });
}

/** Also where the object is missing: it may be on its way, and who may not list a bucket is told no difference. */
function temporaryFailure(cause: unknown): AppError {
  return new AppError('unavailable', {
    detail: 'The mail could not be read and stored.',
    fix: 'Try again later.',
    cause,
  });
}
