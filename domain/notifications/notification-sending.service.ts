import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { LockMode } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import {
  type MailTransport,
  redactAddresses,
  type TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import { NOTIFICATION_PAUSES_MS } from '../../workflows/notifications/send-notification.contract.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import { buildMime } from '../mime/build-mime.ts';
import { signBytes } from '../mime/sign-mime.ts';
import { type Notification, NotificationEntity } from './notification.entity.ts';
import { renderLetter } from './render-letter.ts';
import { type TemplateName, type TemplateParams, writeLetter } from './templates.ts';

export type SendingOutcome =
  | { kind: 'settled'; status: string }
  /** `detail` is without addresses. */
  | { kind: 'retry'; delayMs: number; detail: string };

export interface NotificationSendingService {
  /**
   * Hands the mail to the transport if it has not been. What is being handed over is committed first, so that a mail
   * whose worker died at it is not sent a second time.
   */
  send(notificationId: string): Promise<SendingOutcome>;
  /** Gives it up; one that is settled stays as it is. Returns its status. */
  stop(notificationId: string): Promise<string>;
}

export interface NotificationSendingOptions {
  database: Database;
  mailTransport: Pick<MailTransport, 'transmit'>;
  dkimKeys: DkimKeys;
  /** From address of system mails. */
  systemAddress: string;
  /** Envelope sender. Nobody listens there: reports are not asked for, and what comes is refused at RCPT. */
  returnPath: string;
}

export function createNotificationSendingService(
  options: NotificationSendingOptions,
): NotificationSendingService {
  const { database, mailTransport, returnPath } = options;
  return {
    async send(notificationId) {
      const mail = await write(options, notificationId);
      if (!mail) return { kind: 'settled', status: 'gone' };
      const settled = await claimAttempt(database, notificationId);
      if (settled) return settled;
      const result = await mailTransport.transmit({
        sender: returnPath,
        recipient: mail.recipient,
        openRaw: async () => Readable.from([mail.bytes]),
        sizeBytes: mail.bytes.length,
        envelopeId: notificationId,
        reports: 'never',
      });
      return settle(database, notificationId, result);
    },

    stop: (notificationId) => stopNotification(database, notificationId),
  };
}

/** See {@link NotificationSendingService.stop}. */
export function stopNotification(database: Database, notificationId: string): Promise<string> {
  return withLocked(database, notificationId, (notification) => {
    if (notification?.status === 'pending') fail(notification, 'Stopped by an operator.');
    return notification?.status ?? 'gone';
  });
}

/** Before anything is claimed: what goes wrong here may be tried again. */
async function write(
  { database, dkimKeys, systemAddress }: NotificationSendingOptions,
  notificationId: string,
): Promise<{ recipient: string; bytes: Buffer } | null> {
  const notification = await database.autocommit((em) =>
    em.findOne(NotificationEntity, { id: notificationId }),
  );
  if (!notification) return null;
  const domain = systemAddress.slice(systemAddress.lastIndexOf('@') + 1).toLowerCase();
  const params = notification.params as unknown as TemplateParams[TemplateName];
  const mail = await buffer(
    buildMime({
      messageId: `${notification.id}@${domain}`,
      date: notification.createdAt,
      from: { email: systemAddress },
      to: [{ email: notification.email }],
      cc: [],
      replyTo: [],
      inReplyTo: null,
      references: [],
      autoSubmitted: true,
      headers: {},
      ...renderLetter(writeLetter(notification.template, params)),
    }),
  );
  const key = await dkimKeys.signingKeyFor(notification.organizationId, domain);
  return { recipient: notification.email, bytes: await signBytes(mail, key, notification.createdAt) };
}

/** @returns null where the mail is now the caller's to hand over. */
async function claimAttempt(database: Database, notificationId: string): Promise<SendingOutcome | null> {
  return withLocked(database, notificationId, (notification) => {
    if (!notification) return { kind: 'settled', status: 'gone' };
    if (notification.status === 'sending') fail(notification, UNKNOWN);
    if (notification.status !== 'pending') return { kind: 'settled', status: notification.status };
    notification.status = 'sending';
    notification.attempts += 1;
    return null;
  });
}

const UNKNOWN = 'It may have left: the answer was lost. It is not sent again.';
const MAX_ERROR_CHARACTERS = 2_000;

async function settle(
  database: Database,
  notificationId: string,
  result: TransmissionResult,
): Promise<SendingOutcome> {
  return withLocked(database, notificationId, (notification) => {
    if (!notification) return { kind: 'settled', status: 'gone' };
    notification.lastError = storableText(result.response).slice(0, MAX_ERROR_CHARACTERS);
    if (result.kind === 'accepted') {
      // Also where somebody took this worker for dead in between.
      Object.assign(notification, {
        status: 'sent',
        sentAt: new Date(),
        nextAttemptAt: null,
        lastError: null,
      });
    } else if (result.kind === 'refused') fail(notification, notification.lastError);
    else if (result.kind === 'ambiguous') fail(notification, `${UNKNOWN} ${notification.lastError}`);
    else if (notification.status === 'sending') return defer(notification);
    return { kind: 'settled', status: notification.status };
  });
}

function defer(notification: Notification): SendingOutcome {
  const delayMs = NOTIFICATION_PAUSES_MS[notification.attempts - 1];
  if (delayMs === undefined) {
    fail(notification, notification.lastError ?? 'No answer');
    return { kind: 'settled', status: notification.status };
  }
  notification.status = 'pending';
  notification.nextAttemptAt = new Date(Date.now() + delayMs);
  return { kind: 'retry', delayMs, detail: redactAddresses(notification.lastError ?? 'No answer') };
}

function fail(notification: Notification, why: string): void {
  Object.assign(notification, { status: 'failed', nextAttemptAt: null, lastError: why });
}

function withLocked<T>(
  database: Database,
  notificationId: string,
  work: (notification: Notification | null) => T,
): Promise<T> {
  return database.systemTransaction(async ({ em }) =>
    work(
      await em.findOne(NotificationEntity, { id: notificationId }, { lockMode: LockMode.PESSIMISTIC_WRITE }),
    ),
  );
}
