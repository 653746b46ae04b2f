import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Egress } from '../../platform/egress/egress.ts';
import { AppError } from '../../platform/errors.ts';
import type { OutcomeService } from '../outbound/outcome.service.ts';
import { SendAttemptEntity } from '../outbound/send-attempt.entity.ts';
import { readSesEvent, type SesEvent } from './ses-event.ts';
import type { SesMailService } from './ses-mail.service.ts';
import { readSesMail } from './ses-mail.ts';
import {
  isSignedBy,
  isSnsCertificateUrl,
  isSnsSubscribeUrl,
  readSnsMessage,
  type SnsMessage,
} from './sns-message.ts';

export interface SesNotificationService {
  /**
   * Takes what SNS posts. Only a message signed by SNS, of a topic on our list, has any effect; repeating one has none.
   *
   * @returns what became of it, once that is committed.
   * @throws AppError `validation_error`, `unauthenticated`, `permission_denied` (another topic), `unavailable` (SNS
   * should try again), and what {@link SesMailService} throws.
   */
  take(body: unknown): Promise<'stored' | 'folded' | 'ignored' | 'confirmed'>;
}

export interface SesNotificationServiceOptions {
  /** As a worker: a notification names a mail, not its tenant. */
  database: Database;
  outcomes: Pick<OutcomeService, 'fold'>;
  /** Of mail received by SES. */
  mails: SesMailService;
  egress: Pick<Egress, 'get'>;
  topicArns: string[];
}

/** A notification may overtake the row of the attempt it tells of; SNS comes again. */
const OVERTAKING_MS = 300_000;
const FETCH_TIMEOUT_MS = 10_000;
const MAX_CERTIFICATE_BYTES = 32_768;
const MAX_CERTIFICATES = 20;

export function createSesNotificationService(options: SesNotificationServiceOptions): SesNotificationService {
  const certificates = new Map<string, string>();

  async function certificateAt(url: string): Promise<string> {
    const known = certificates.get(url);
    if (known) return known;
    const fetched = await fetchFrom(options.egress, url);
    if (certificates.size >= MAX_CERTIFICATES) certificates.clear();
    certificates.set(url, fetched);
    return fetched;
  }

  return {
    async take(body) {
      const message = readSnsMessage(body);
      if (!message) throw unreadable();
      // Asked first: strangers cannot make us fetch anything.
      if (!options.topicArns.includes(message.TopicArn)) throw otherTopic();
      if (!isSnsCertificateUrl(message.SigningCertURL)) throw unsigned();
      if (!isSignedBy(message, await certificateAt(message.SigningCertURL), new Date())) throw unsigned();
      if (message.Type === 'SubscriptionConfirmation') return confirm(options.egress, message);
      if (message.Type !== 'Notification') return 'ignored';
      const mail = readSesMail(message.Message);
      if (mail) return options.mails.take(mail);
      const event = readSesEvent(message.Message);
      return event ? fold(options, event) : 'ignored';
    },
  };
}

async function confirm(
  egress: Pick<Egress, 'get'>,
  { SubscribeURL: url = '' }: SnsMessage,
): Promise<'confirmed'> {
  if (!isSnsSubscribeUrl(url)) throw unsigned();
  await fetchFrom(egress, url);
  return 'confirmed';
}

async function fetchFrom(egress: Pick<Egress, 'get'>, url: string): Promise<string> {
  const answer = await egress.get(url, {
    headers: {},
    timeoutMs: FETCH_TIMEOUT_MS,
    maxResponseBytes: MAX_CERTIFICATE_BYTES,
    keepBytes: MAX_CERTIFICATE_BYTES,
  });
  if (answer.kind === 'answer' && answer.status === 200) return answer.body;
  throw new AppError('unavailable', { detail: 'SNS could not be reached.', fix: 'Try again later.' });
}

/** SES is asked for one recipient at a time, so its id names one attempt, and that one recipient. */
async function fold(
  { database, outcomes }: SesNotificationServiceOptions,
  { sesMessageId, sentAt, outcomes: told }: SesEvent,
): Promise<'folded' | 'ignored'> {
  const attempt = await database.autocommit((em) =>
    em.findOne(SendAttemptEntity, { providerMessageId: storableText(sesMessageId, 255) }),
  );
  const [first] = told;
  if (!attempt || !first) {
    if (sentAt && Date.now() - sentAt.getTime() < OVERTAKING_MS)
      throw new AppError('unavailable', { detail: 'The mail is not known yet.', fix: 'Try again later.' });
    return 'ignored';
  }
  const { statusCode, diagnosticCode } = first.outcome;
  const outcome = {
    ...first.outcome,
    position: attempt.position,
    statusCode: statusCode === null ? null : storableText(statusCode, 32),
    diagnosticCode: diagnosticCode === null ? null : storableText(diagnosticCode, 1_000),
  };
  await database.systemTransaction((transaction) => outcomes.fold(transaction, attempt.messageId, [outcome]));
  return 'folded';
}

function unreadable(): AppError {
  return new AppError('validation_error', {
    detail: 'The body is no message of Amazon SNS.',
    fix: 'Subscribe this URL to the topic without raw message delivery.',
  });
}

function otherTopic(): AppError {
  return new AppError('permission_denied', {
    detail: 'The topic is not one of ours.',
    fix: 'Add its ARN to SES_TOPIC_ARNS.',
  });
}

function unsigned(): AppError {
  return new AppError('unauthenticated', {
    detail: 'The message is not signed by Amazon SNS.',
    fix: 'Let SNS post here itself; nothing may change the message on its way.',
  });
}
