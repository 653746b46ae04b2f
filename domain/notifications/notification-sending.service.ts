import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { LockMode } from '@mikro-orm/core';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { requireReconciled } from '../../platform/installation/pending-restore.ts';
import {
  type MailTransport,
  redactAddresses,
  type TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import { NOTIFICATION_RETRY_DELAYS_MS } from '../../workflows/notifications/send-notification.contract.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import { buildMime } from '../mime/build-mime.ts';
import { signBytes } from '../mime/sign-mime.ts';
import { type Notification, NotificationEntity } from './notification.entity.ts';
import { openSealedParams } from './person-notification.service.ts';
import { renderEmail } from './render-email.ts';
import { renderTemplate, type TemplateName, type TemplateParams } from './templates.ts';

export type SendOutcome =
  | { kind: 'settled'; status: string }
  /** `detail` contains no addresses. */
  | { kind: 'retry'; delayMs: number; detail: string };

export interface NotificationSendingService {
  /**
   * Sends a pending email. The attempt is committed before the transport is called, so that an email whose worker
   * crashed during the attempt is not sent twice.
   */
  send(notificationId: string): Promise<SendOutcome>;
  /** Marks a pending email as failed; any other stays unchanged. Returns its status. */
  stop(notificationId: string, reason?: string): Promise<string>;
}

export interface NotificationSendingOptions {
  database: Database;
  mailTransport: Pick<MailTransport, 'transmit'>;
  dkimKeys: DkimKeys;
  secretBox: SecretBox;
  /** Where people reach the service, for links. */
  publicUrl: string;
  /** From address of system emails. */
  systemAddress: string;
  /**
   * Envelope sender. The address does not accept mail: no DSNs are requested, and any that arrive are rejected at
   * RCPT.
   */
  returnPath: string;
}

export function createNotificationSendingService(
  options: NotificationSendingOptions,
): NotificationSendingService {
  const { database, mailTransport, returnPath } = options;
  return {
    async send(notificationId) {
      await requireReconciled(database);
      const email = await buildEmail(options, notificationId);
      if (!email) return { kind: 'settled', status: 'not_found' };
      const claim = await claimAttempt(database, notificationId);
      if (claim.kind !== 'claimed') return claim;
      const result = await mailTransport.transmit({
        sender: returnPath,
        recipient: email.recipient,
        openRaw: async () => Readable.from([email.bytes]),
        sizeBytes: email.bytes.length,
        envelopeId: notificationId,
        reports: 'never',
      });
      return recordResult(database, { notificationId, episode: claim.episode }, result);
    },

    stop: (notificationId, reason) => stopNotification(database, notificationId, reason),
  };
}

/** See {@link NotificationSendingService.stop}. */
export function stopNotification(
  database: Database,
  notificationId: string,
  reason = 'Stopped by an operator.',
): Promise<string> {
  return withLockedNotification(database, notificationId, (notification) => {
    if (notification?.status === 'pending') fail(notification, reason);
    // The worker died during the attempt. If it is still running, its result overrides this one.
    if (notification?.status === 'sending') fail(notification, `${reason} ${OUTCOME_UNKNOWN}`);
    return notification?.status ?? 'not_found';
  });
}

/** Emails about a person's own account: only the shared domain's key can sign them. */
const NO_ORGANIZATION = '';

/** Runs before the attempt is claimed, so that a failure here can be retried. */
async function buildEmail(
  { database, dkimKeys, secretBox, publicUrl, systemAddress }: NotificationSendingOptions,
  notificationId: string,
): Promise<{ recipient: string; bytes: Buffer } | null> {
  const notification = await database.autocommit((em) =>
    em.findOne(NotificationEntity, { id: notificationId }),
  );
  if (!notification) return null;
  const domain = systemAddress.slice(systemAddress.lastIndexOf('@') + 1).toLowerCase();
  const params = {
    ...notification.params,
    ...openSealedParams(secretBox, notification),
  } as unknown as TemplateParams[TemplateName];
  const email = await buffer(
    buildMime({
      messageId: `${notification.id}@${domain}`,
      date: notification.createdAt,
      from: { email: systemAddress },
      to: [{ email: notification.email }],
      cc: [],
      replyTo: [],
      inReplyTo: null,
      references: [],
      autoSubmitted: 'auto-generated',
      headers: {},
      ...renderEmail(renderTemplate(notification.template, params), publicUrl),
    }),
  );
  const key = await dkimKeys.findSigningKey(notification.organizationId ?? NO_ORGANIZATION, domain);
  return { recipient: notification.email, bytes: await signBytes(email, key, notification.createdAt) };
}

/** @returns `claimed` if the caller must send. */
async function claimAttempt(
  database: Database,
  notificationId: string,
): Promise<SendOutcome | { kind: 'claimed'; episode: number }> {
  return withLockedNotification(database, notificationId, (notification) => {
    if (!notification) return { kind: 'settled', status: 'not_found' };
    if (notification.status === 'sending') fail(notification, OUTCOME_UNKNOWN);
    if (notification.status !== 'pending') return { kind: 'settled', status: notification.status };
    notification.status = 'sending';
    notification.attempts += 1;
    return { kind: 'claimed', episode: notification.episode };
  });
}

const OUTCOME_UNKNOWN = 'The relay’s answer was lost, so the email may have been sent. It is not sent again.';
const MAX_ERROR_CHARACTERS = 2_000;

async function recordResult(
  database: Database,
  { notificationId, episode }: { notificationId: string; episode: number },
  result: TransmissionResult,
): Promise<SendOutcome> {
  return withLockedNotification(database, notificationId, (notification) => {
    if (!notification) return { kind: 'settled', status: 'not_found' };
    // A person has sent it again meanwhile: only that it was accepted still matters.
    const isOutdated = notification.episode !== episode || notification.status === 'sent';
    if (isOutdated && result.kind !== 'accepted') return { kind: 'settled', status: notification.status };
    notification.lastError = storableText(result.response).slice(0, MAX_ERROR_CHARACTERS);
    if (result.kind === 'accepted') {
      // Recorded even if the attempt has been recorded as lost meanwhile.
      Object.assign(notification, {
        status: 'sent',
        sentAt: new Date(),
        nextAttemptAt: null,
        lastError: null,
        sealedParams: null,
      });
    } else if (result.kind === 'refused') fail(notification, notification.lastError);
    else if (result.kind === 'ambiguous') fail(notification, `${OUTCOME_UNKNOWN} ${notification.lastError}`);
    else if (notification.status === 'sending') return defer(notification);
    return { kind: 'settled', status: notification.status };
  });
}

function defer(notification: Notification): SendOutcome {
  const delayMs = NOTIFICATION_RETRY_DELAYS_MS[notification.attempts - 1];
  if (delayMs === undefined) {
    fail(notification, notification.lastError ?? 'No answer');
    return { kind: 'settled', status: notification.status };
  }
  notification.status = 'pending';
  notification.nextAttemptAt = new Date(Date.now() + delayMs);
  return { kind: 'retry', delayMs, detail: redactAddresses(notification.lastError ?? 'No answer') };
}

function fail(notification: Notification, reason: string): void {
  Object.assign(notification, {
    status: 'failed',
    nextAttemptAt: null,
    lastError: reason,
  });
}

function withLockedNotification<T>(
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
