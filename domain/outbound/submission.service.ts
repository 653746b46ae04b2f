import type { Readable } from 'node:stream';
import { LockMode } from '@mikro-orm/core';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { attachFiles } from '../attachments/attach-files.ts';
import type { AttachmentService } from '../attachments/attachment.service.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import type { CredentialService } from '../inboxes/credential.service.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { InboxCredentialEntity } from '../inboxes/inbox-credential.entity.ts';
import { findThread } from '../messages/find-thread.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { RecipientEntity } from '../messages/recipient.entity.ts';
import { isCustomHeaderName } from '../mime/build-mime.ts';
import type { ParsedInboundMail, ParserPool } from '../mime/parser/pool.ts';
import { claimObjects, registerObjects } from '../stored-objects/unclaimed-objects.ts';
import { checkSend } from './check-send.ts';
import { createOutboundMessage } from './create-outbound-message.ts';
import type { EnvelopeRecipient, OutboundContent } from './outbound-content.ts';

/** A mail client that authenticated with an inbox's password. */
export interface Submitter {
  inboxId: string;
  email: string;
  /** When the password was set that the client used. */
  rotatedAt: Date;
  scope: Scope;
}

export interface SubmittedMessage {
  /** Envelope recipients, each valid for the API. */
  recipients: string[];
  raw: Readable;
}

export interface SubmissionService {
  /** @returns null if the address or password is wrong. */
  authenticate(username: string, password: string): Promise<Submitter | null>;
  /** Whether MAIL FROM is the inbox's address, with or without a plus tag. */
  maySendAs(submitter: Submitter, mailFrom: string): boolean;
  /**
   * Queues a submitted message with the sender's own bytes. Gate, thread, events and workflow are the same as for a
   * send through the API. The same Message-ID to the same recipients within a day is a duplicate: a client that missed
   * the reply sends the message again.
   *
   * @returns the message's id.
   * @throws AppError `permission_denied` for another From, `validation_error` for a malformed message,
   * `unauthenticated` if the password was changed in the meantime, and `message_rejected`, `usage_limit_exceeded` and
   * `*_suspended` as for the API; errors of `raw`. Nothing is queued in these cases.
   */
  submit(submitter: Submitter, mail: SubmittedMessage): Promise<string>;
}

export interface SubmissionServiceOptions {
  database: Database;
  storage: Pick<Storage, 'putStream' | 'getStream'>;
  outbox: Outbox;
  events: EventService;
  credentials: Pick<CredentialService, 'authenticate'>;
  attachments: Pick<AttachmentService, 'storeUpload'>;
  reader: Pick<ParserPool, 'parse'>;
}

const DUPLICATE_WINDOW_MS = 24 * 3_600_000;
const UNCLAIMED_GRACE_MS = 3_600_000;

export function createSubmissionService(options: SubmissionServiceOptions): SubmissionService {
  const { database, storage, credentials } = options;
  return {
    async authenticate(username, password) {
      const known = await credentials.authenticate(username, password);
      if (!known) return null;
      const { id: inboxId, email, organizationId, environmentId } = known.inbox;
      const scope: Scope = {
        organizationId,
        environmentId,
        environmentBound: true,
        inboxId,
        permissions: new Set(['messages:send'] as const),
        actor: { kind: 'system', id: inboxId },
        requestId: newId('request'),
      };
      return { inboxId, email, rotatedAt: known.rotatedAt, scope };
    },

    maySendAs: ({ email }, mailFrom) => baseAddress(mailFrom) === email,

    async submit(submitter, { raw, recipients }) {
      const { scope } = submitter;
      const submittedKey = `raw/submitted/${newId('receipt')}.eml`;
      await registerObjects(database, scope, [submittedKey], UNCLAIMED_GRACE_MS);
      await storage.putStream(submittedKey, raw, { contentType: 'message/rfc822' });
      const { mail, files } = await parseSubmission(options, submitter, submittedKey);
      validateSubmission(mail, submitter);
      return database.transaction(scope, (transaction) =>
        queueSubmission(transaction, options, {
          submitter,
          mail,
          files,
          submittedKey,
          recipients: uniqueAddresses(recipients),
        }),
      );
    },
  };
}

interface Submission {
  submitter: Submitter;
  mail: ParsedInboundMail;
  files: FileToAttach[];
  submittedKey: string;
  recipients: string[];
}

async function parseSubmission(
  { storage, reader, attachments }: SubmissionServiceOptions,
  { scope, inboxId }: Submitter,
  submittedKey: string,
): Promise<{ mail: ParsedInboundMail; files: FileToAttach[] }> {
  const mail = await reader.parse(await storage.getStream(submittedKey), {
    async storeFile(_index, content, contentType) {
      const metadata = { filename: '', contentType, contentId: null, disposition: 'attachment' as const };
      const { storageKey, sizeBytes, sha256 } = await attachments.storeUpload(
        scope,
        inboxId,
        metadata,
        content,
      );
      return { key: storageKey, stored: { sizeBytes, sha256: Buffer.from(sha256) } };
    },
  });
  const files = mail.attachments.map(({ stored, ...metadata }) => ({
    kind: 'stored' as const,
    file: { ...metadata, ...stored },
  }));
  return { mail, files };
}

function validateSubmission({ from, parseError }: ParsedInboundMail, { email }: Submitter): void {
  if (parseError !== null)
    throw new AppError('validation_error', { detail: parseError, fix: 'Send a well-formed MIME message.' });
  if (!from || baseAddress(from.email) !== email)
    throw new AppError('permission_denied', {
      detail: `From must be ${email}.`,
      fix: 'Set the sender address of the account to the address of the inbox.',
    });
}

async function queueSubmission(
  transaction: Transaction,
  { outbox, events }: SubmissionServiceOptions,
  { submitter, mail, files, submittedKey, recipients }: Submission,
): Promise<string> {
  const { em } = transaction;
  const { scope } = submitter;
  const inbox = await findInbox(em, scope, submitter.inboxId);
  await requireCurrentPassword(transaction, submitter);
  const duplicateId = await findDuplicate(transaction, inbox.id, mail.messageId, recipients);
  if (duplicateId) return duplicateId;
  const { content, envelope } = toOutboundContent(mail, recipients);
  const thread = await findThread(
    em,
    { inboxId: inbox.id, mail: { ...mail, subject: '' }, from: { email: inbox.email }, at: new Date() },
    LockMode.PESSIMISTIC_WRITE,
  );
  const envelopeAddresses = (recipientField: EnvelopeRecipient['field']) =>
    envelope.filter(({ field }) => field === recipientField).map(({ email }) => ({ email }));
  const refusal = await checkSend(
    transaction,
    events,
    inbox,
    {
      ...content,
      to: envelopeAddresses('to'),
      cc: envelopeAddresses('cc'),
      bcc: envelopeAddresses('bcc'),
    },
    thread?.id,
  );
  if (refusal) throw refusal;
  await claimObjects(em, [submittedKey]);
  const { message } = createOutboundMessage(transaction, outbox, {
    inbox,
    content,
    envelope,
    thread,
    parent: null,
    attachments: await attachFiles(em, { scope, inbox, files }),
  });
  Object.assign(message, {
    submittedKey,
    rfcMessageId: mail.messageId ?? message.rfcMessageId,
    inReplyTo: mail.inReplyTo,
    references: mail.references,
    fromName: mail.from?.name ?? null,
  } satisfies Partial<Message>);
  return message.id;
}

/** A password change also ends existing connections, because the old password may have leaked. */
async function requireCurrentPassword({ em }: Transaction, { inboxId, rotatedAt }: Submitter): Promise<void> {
  const credential = await em.findOne(InboxCredentialEntity, { inboxId });
  if (credential?.rotatedAt.getTime() === rotatedAt.getTime()) return;
  throw new AppError('unauthenticated', {
    detail: 'The password was changed after this connection authenticated.',
    fix: 'Log in again with the new password.',
  });
}

/** Calls with the same Message-ID are serialized, so that the later one finds the message of the earlier one. */
async function findDuplicate(
  { em }: Transaction,
  inboxId: string,
  rfcMessageId: string | null,
  recipients: string[],
): Promise<string | null> {
  if (rfcMessageId === null) return null;
  await lockKey(em, 'submission', inboxId, rfcMessageId);
  const since = new Date(Date.now() - DUPLICATE_WINDOW_MS);
  const candidates = await em.find(
    MessageEntity,
    { inboxId, rfcMessageId, direction: 'outbound', createdAt: { $gte: since } },
    { fields: ['id'], orderBy: { id: 'desc' }, limit: 20 },
  );
  const rows = await em.find(RecipientEntity, { messageId: { $in: candidates.map(({ id }) => id) } });
  const expected = recipients.map((email) => email.toLowerCase()).sort();
  for (const { id } of candidates) {
    const sent = rows.filter(({ messageId }) => messageId === id).map(({ email }) => email.toLowerCase());
    if (JSON.stringify(sent.sort()) === JSON.stringify(expected)) return id;
  }
  return null;
}

/** The header gives the recipients to show, the envelope those to send to. Envelope-only recipients become Bcc. */
function toOutboundContent(
  mail: ParsedInboundMail,
  recipients: string[],
): { content: OutboundContent; envelope: EnvelopeRecipient[] } {
  const keysOf = (list: { email: string }[]) => new Set(list.map(({ email }) => email.toLowerCase()));
  const [to, cc] = [keysOf(mail.to), keysOf(mail.cc)];
  const envelope = recipients.map((email) => {
    const field = to.has(email.toLowerCase()) ? 'to' : cc.has(email.toLowerCase()) ? 'cc' : 'bcc';
    return { field, email } as const;
  });
  const content = {
    to: mail.to,
    cc: mail.cc,
    bcc: envelope.filter(({ field }) => field === 'bcc').map(({ email }) => ({ email })),
    replyTo: mail.replyTo,
    subject: mail.subject,
    textBody: mail.text,
    htmlBody: mail.html,
    labels: [],
    headers: Object.fromEntries(Object.entries(mail.headers).filter(([name]) => isCustomHeaderName(name))),
  };
  return { content, envelope };
}

function uniqueAddresses(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [address.toLowerCase(), address])).values()];
}
