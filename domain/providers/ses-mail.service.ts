import { Readable } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import { SesObjectError, type SesObjects } from '../../platform/ses-objects.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import type { MailIntake, ProviderMail } from './mail-intake.service.ts';
import type { SesMail } from './ses-mail.ts';

export type SesMailService = ReturnType<typeof createSesMailService>;

export interface SesMailServiceOptions {
  intake: MailIntake;
  objects: Pick<SesObjects, 'open'>;
  buckets: string[];
  /** Used for logging: SES has already accepted the message, so the sender gets no error. */
  onUnknownRecipients(sesMessageId: string, recipients: string[]): void;
}

export function createSesMailService(options: SesMailServiceOptions) {
  const { intake, buckets, onUnknownRecipients } = options;
  return {
    /**
     * Accepts a message that SES received. Resolves once it is stored and its receipts are committed. Idempotent.
     *
     * @returns `ignored` if no recipient has an inbox.
     * @throws AppError `permission_denied` for an unlisted bucket, `unprocessable` for unreadable content, `unavailable`
     * if SNS should retry (also if a recipient has reached its receive limit); errors of {@link MailIntake}.
     */
    async accept(mail: SesMail): Promise<'stored' | 'ignored'> {
      const { sesMessageId, mailFrom, content } = mail;
      if (content === null) throw missingContent();
      if (content.kind === 'object' && !buckets.includes(content.bucket)) throw unknownBucket();
      const { recipients, unknown, overLimit } = await intake.resolve(mail.recipients, mailFrom);
      if (unknown.length > 0) onUnknownRecipients(sesMessageId, unknown);
      if (recipients.length === 0 && overLimit.length === 0) return 'ignored';
      const transportId = `ses:${sesMessageId}`;
      // Checked before anything is read: SNS retries requests that take more than 15 seconds.
      if (recipients.length > 0 && !(await intake.hasReceived(transportId, recipients)))
        await acceptForRecipients(options, { ...mail, content }, { transportId, recipients });
      // All other recipients have received it by now. SNS retries for those over their limit.
      if (overLimit.length > 0 && !(await intake.hasReceived(transportId, overLimit)))
        throw receiveLimitReached();
      return 'stored';
    },
  };
}

async function acceptForRecipients(
  { intake, objects }: SesMailServiceOptions,
  mail: SesMail & { content: NonNullable<SesMail['content']> },
  delivery: Pick<ProviderMail, 'transportId' | 'recipients'>,
): Promise<void> {
  const { content, mailFrom, receivedAt, verdicts } = mail;
  const source =
    content.kind === 'inline' ? Readable.from([content.bytes]) : await openObject(objects, content);
  try {
    await intake.accept({
      ...delivery,
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
    // An unread stream holds a connection.
    source.destroy();
  }
}

/** Not 429: SNS retries only server errors. */
function receiveLimitReached(): AppError {
  return new AppError('unavailable', {
    detail: 'A recipient has reached its receive limit.',
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
    detail: 'The notification contains neither the message nor an S3 object key.',
    fix: 'Configure the receipt rule to deliver to S3 with this topic, or to SNS with content.',
  });
}

function unknownBucket(): AppError {
  return new AppError('permission_denied', {
    detail: 'The bucket is not configured.',
    fix: 'Add its name to SES_INBOUND_BUCKETS.',
  });
}

function encryptedMail(): AppError {
  return new AppError('unprocessable', {
    detail: 'SES encrypted the message with a client-side key.',
    fix: 'Disable message encryption in the receipt rule. The bucket itself may be encrypted.',
  });
}

/** Also used for a missing object: without permission to list the bucket, S3 does not distinguish the causes. */
function temporaryFailure(cause: unknown): AppError {
  return new AppError('unavailable', {
    detail: 'The message could not be read and stored.',
    fix: 'Try again later.',
    cause,
  });
}
