import { LRUCache } from 'lru-cache';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Egress } from '../../platform/egress/egress.ts';
import { AppError } from '../../platform/errors.ts';
import type { OutcomeService } from '../outbound/outcome.service.ts';
import { parseSesEvent, type SesEvent } from './ses-event.ts';
import type { SesMailService } from './ses-mail.service.ts';
import { parseSesMail } from './ses-mail.ts';
import {
  isSignedBy,
  isSnsCertificateUrl,
  isSnsSubscribeUrl,
  parseSnsMessage,
  type SnsMessage,
} from './sns-message.ts';

export type SesNotificationService = ReturnType<typeof createSesNotificationService>;

export interface SesNotificationServiceOptions {
  /** Uses the worker role, because a notification does not identify the organization. */
  database: Database;
  outcomes: Pick<OutcomeService, 'apply'>;
  /** Accepts mail that SES received. */
  sesMail: SesMailService;
  egress: Pick<Egress, 'get'>;
  topicArns: string[];
}

/** A notification may arrive before the attempt is recorded. Within this time, SNS should retry. */
const UNKNOWN_ATTEMPT_GRACE_MS = 300_000;
const FETCH_TIMEOUT_MS = 10_000;
const MAX_CERTIFICATE_BYTES = 32_768;
const MAX_CERTIFICATES = 20;

export function createSesNotificationService(options: SesNotificationServiceOptions) {
  const certificates = new LRUCache<string, string>({ max: MAX_CERTIFICATES });

  async function fetchCertificate(url: string): Promise<string> {
    const known = certificates.get(url);
    if (known) return known;
    const fetched = await fetchFromSns(options.egress, url);
    certificates.set(url, fetched);
    return fetched;
  }

  return {
    /**
     * Processes an SNS message. Only messages that SNS signed for a configured topic have an effect. Idempotent.
     *
     * @returns the result, once it is committed.
     * @throws AppError `validation_error`, `unauthenticated`, `permission_denied` (unknown topic), `unavailable` (SNS
     * should retry); errors of {@link SesMailService}.
     */
    async process(body: unknown): Promise<'stored' | 'folded' | 'ignored' | 'confirmed'> {
      const message = parseSnsMessage(body);
      if (!message) throw invalidMessage();
      // Checked first, so that unknown senders cannot trigger a request.
      if (!options.topicArns.includes(message.TopicArn)) throw unknownTopic();
      if (!isSnsCertificateUrl(message.SigningCertURL)) throw invalidSignature();
      if (!isSignedBy(message, await fetchCertificate(message.SigningCertURL), new Date()))
        throw invalidSignature();
      if (message.Type === 'SubscriptionConfirmation') return confirmSubscription(options.egress, message);
      if (message.Type !== 'Notification') return 'ignored';
      const mail = parseSesMail(message.Message);
      if (mail) return options.sesMail.accept(mail);
      const event = parseSesEvent(message.Message);
      return event ? applyEvent(options, event) : 'ignored';
    },
  };
}

async function confirmSubscription(
  egress: Pick<Egress, 'get'>,
  { SubscribeURL: url = '' }: SnsMessage,
): Promise<'confirmed'> {
  if (!isSnsSubscribeUrl(url)) throw invalidSignature();
  await fetchFromSns(egress, url);
  return 'confirmed';
}

async function fetchFromSns(egress: Pick<Egress, 'get'>, url: string): Promise<string> {
  const response = await egress.get(url, {
    headers: {},
    timeoutMs: FETCH_TIMEOUT_MS,
    maxResponseBytes: MAX_CERTIFICATE_BYTES,
    retainBytes: MAX_CERTIFICATE_BYTES,
  });
  if (response.kind === 'response' && response.status === 200) return response.body;
  throw new AppError('unavailable', { detail: 'SNS could not be reached.', fix: 'Retry later.' });
}

/** Each request to SES has one recipient, so the SES id identifies one attempt and its recipient. */
async function applyEvent(
  { database, outcomes }: SesNotificationServiceOptions,
  { sesMessageId, sentAt, outcomes: reported }: SesEvent,
): Promise<'folded' | 'ignored'> {
  const attempt = await database.db
    .selectFrom('send_attempts')
    .select(['message_id as messageId', 'position'])
    .where('provider_message_id', '=', storableText(sesMessageId, 255))
    .limit(1)
    .executeTakeFirst();
  const [first] = reported;
  if (!attempt || !first) {
    if (sentAt && Date.now() - sentAt.getTime() < UNKNOWN_ATTEMPT_GRACE_MS)
      throw new AppError('unavailable', { detail: 'The message is not yet known.', fix: 'Retry later.' });
    return 'ignored';
  }
  const { statusCode, diagnosticCode } = first.outcome;
  const outcome = {
    ...first.outcome,
    position: attempt.position,
    statusCode: statusCode === null ? null : storableText(statusCode, 32),
    diagnosticCode: diagnosticCode === null ? null : storableText(diagnosticCode, 1_000),
  };
  await database.systemTransaction((transaction) =>
    outcomes.apply(transaction, attempt.messageId, [outcome]),
  );
  return 'folded';
}

function invalidMessage(): AppError {
  return new AppError('validation_error', {
    detail: 'The body is not an Amazon SNS message.',
    fix: 'Subscribe this URL to the topic without raw message delivery.',
  });
}

function unknownTopic(): AppError {
  return new AppError('permission_denied', {
    detail: 'The topic is not configured.',
    fix: 'Add its ARN to SES_TOPIC_ARNS.',
  });
}

function invalidSignature(): AppError {
  return new AppError('unauthenticated', {
    detail: 'The message does not have a valid Amazon SNS signature.',
    fix: 'Have SNS post to this URL directly, without a proxy that changes the body.',
  });
}
