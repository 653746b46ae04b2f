import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Updateable } from 'kysely';
import type { SecretBox } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Tables } from '../../platform/database/tables.ts';
import { requireReconciled } from '../../platform/installation/pending-restore.ts';
import {
  type MailTransport,
  redactAddresses,
  type TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import { NOTIFICATION_RETRY_DELAYS_MS } from '../../workflows/notifications/send-notification.contract.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import { buildMime } from '../mime/build-mime.ts';
import { domainOf } from '../mime/mail-address.ts';
import { signBytes } from '../mime/sign-mime.ts';
import { type Notification, NotificationEntity } from './notification.entity.ts';
import { openSealedParams } from './person-notification.service.ts';
import { renderEmail } from './render-email.ts';
import { renderTemplate, type TemplateName, type TemplateParams } from './templates.ts';

export type SendOutcome =
  | { kind: 'settled'; status: string }
  /** `detail` contains no addresses. */
  | { kind: 'retry'; delayMs: number; detail: string };

export type NotificationSendingService = ReturnType<typeof createNotificationSendingService>;

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

export function createNotificationSendingService(options: NotificationSendingOptions) {
  const { database, mailTransport, returnPath } = options;
  return {
    /**
     * Sends a pending email. The attempt is committed before the transport is called, so that an email whose worker
     * crashed during the attempt is not sent twice.
     */
    async send(notificationId: string): Promise<SendOutcome> {
      await requireReconciled(database);
      const email = await buildEmail(options, notificationId);
      if (!email) return NOT_FOUND;
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
      return recordResult(database, { notificationId, generation: claim.generation }, result);
    },

    stop: (notificationId: string, reason?: string): Promise<string> =>
      stopNotification(database, notificationId, reason),
  };
}

const NOT_FOUND: SendOutcome = { kind: 'settled', status: 'not_found' };

/** Marks an unsent email as failed. Other emails do not change. Returns its status, or `not_found`. */
export async function stopNotification(
  database: Database,
  notificationId: string,
  reason = 'Stopped by an operator.',
): Promise<string> {
  const status = await decideLocked(database, notificationId, ({ status }) => {
    if (status === 'pending') return { outcome: 'failed', change: failed(reason) };
    // The worker crashed during the attempt. If it is still running, its result overrides this one.
    if (status === 'sending') return { outcome: 'failed', change: failed(`${reason} ${OUTCOME_UNKNOWN}`) };
    return { outcome: status };
  });
  return status ?? 'not_found';
}

const RESTORE_BATCH_SIZE = 200;
const RESTORED_ERROR =
  'The database was restored from a backup, and the email may have been sent since the backup. It is not sent again.';

/** Marks the service's own emails that were pending in the backup as failed. Returns their number. */
export async function reconcileRestoredNotifications(
  database: Database,
  createdBefore: Date,
): Promise<number> {
  for (let stopped = 0; ; ) {
    const rows = await database.db
      .selectFrom('notifications')
      .select('id')
      .where('status', '=', anyOf(['pending', 'sending'] as const))
      .where('created_at', '<', createdBefore)
      .orderBy('id')
      .limit(RESTORE_BATCH_SIZE)
      .execute();
    for (const { id } of rows) await stopNotification(database, id, RESTORED_ERROR);
    stopped += rows.length;
    if (rows.length < RESTORE_BATCH_SIZE) return stopped;
  }
}

/** Used for emails about a person's own account, which only the key of the shared domain can sign. */
const NO_ORGANIZATION = '';

/** Runs before the attempt is claimed, so that a failure here can be retried. */
async function buildEmail(
  { database, dkimKeys, secretBox, publicUrl, systemAddress }: NotificationSendingOptions,
  notificationId: string,
): Promise<{ recipient: string; bytes: Buffer } | null> {
  const notification = await database.db
    .selectFrom('notifications')
    .select(columnsOf(NotificationEntity))
    .where('id', '=', notificationId)
    .executeTakeFirst();
  if (!notification) return null;
  const domain = domainOf(systemAddress);
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

async function claimAttempt(
  database: Database,
  notificationId: string,
): Promise<SendOutcome | { kind: 'claimed'; generation: number }> {
  const claim = await decideLocked<SendOutcome | { kind: 'claimed'; generation: number }>(
    database,
    notificationId,
    ({ status, generation, attempts }) => {
      if (status === 'sending') return { outcome: settled('failed'), change: failed(OUTCOME_UNKNOWN) };
      if (status !== 'pending') return { outcome: settled(status) };
      return {
        outcome: { kind: 'claimed', generation },
        change: { status: 'sending', attempts: attempts + 1 },
      };
    },
  );
  return claim ?? NOT_FOUND;
}

const OUTCOME_UNKNOWN = 'The relay’s answer was lost, so the email may have been sent. It is not sent again.';
const MAX_ERROR_CHARACTERS = 2_000;

async function recordResult(
  database: Database,
  { notificationId, generation }: { notificationId: string; generation: number },
  result: TransmissionResult,
): Promise<SendOutcome> {
  const answer = storableText(result.response).slice(0, MAX_ERROR_CHARACTERS);
  const outcome = await decideLocked<SendOutcome>(database, notificationId, (notification) => {
    const { status } = notification;
    // Recorded even if the attempt was recorded as lost in the meantime.
    if (result.kind === 'accepted') return { outcome: settled('sent'), change: sent() };
    // If someone has sent the email again in the meantime, only an acceptance still matters.
    if (notification.generation !== generation || status === 'sent') return { outcome: settled(status) };
    if (result.kind === 'refused') return { outcome: settled('failed'), change: failed(answer) };
    if (result.kind === 'ambiguous')
      return { outcome: settled('failed'), change: failed(`${OUTCOME_UNKNOWN} ${answer}`) };
    if (status === 'sending') return defer(notification, answer);
    return { outcome: settled(status), change: { last_error: answer } };
  });
  return outcome ?? NOT_FOUND;
}

function defer({ attempts }: Pick<Notification, 'attempts'>, answer: string): Decision<SendOutcome> {
  const delayMs = NOTIFICATION_RETRY_DELAYS_MS[attempts - 1];
  if (delayMs === undefined) return { outcome: settled('failed'), change: failed(answer) };
  return {
    outcome: { kind: 'retry', delayMs, detail: redactAddresses(answer) },
    change: {
      status: 'pending',
      next_attempt_at: new Date(Date.now() + delayMs),
      last_error: answer,
    },
  };
}

const settled = (status: string): SendOutcome => ({ kind: 'settled', status });

const sent = (): NotificationChange => ({
  status: 'sent',
  sent_at: new Date(),
  next_attempt_at: null,
  last_error: null,
  sealed_params: null,
});

const failed = (reason: string): NotificationChange => ({
  status: 'failed',
  next_attempt_at: null,
  last_error: reason,
});

type NotificationChange = Updateable<Tables['notifications']>;

interface Decision<Outcome> {
  outcome: Outcome;
  change?: NotificationChange;
}

/** Locks the email, decides and writes the change in one transaction. Undefined if there is no such email. */
function decideLocked<Outcome>(
  database: Database,
  notificationId: string,
  decide: (notification: Pick<Notification, 'status' | 'attempts' | 'generation'>) => Decision<Outcome>,
): Promise<Outcome | undefined> {
  return database.systemTransaction(async ({ db }) => {
    const notification = await db
      .selectFrom('notifications')
      .select(['status', 'attempts', 'generation'])
      .where('id', '=', notificationId)
      .forUpdate()
      .executeTakeFirst();
    if (!notification) return undefined;
    const { outcome, change } = decide(notification);
    if (change) await db.updateTable('notifications').set(change).where('id', '=', notificationId).execute();
    return outcome;
  });
}
