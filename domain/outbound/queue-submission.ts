import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { attachFiles } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { findLinkedThreadId, placeMessage } from '../messages/place-message.ts';
import { findCustomHeaderProblem } from '../mime/custom-header.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import { claimObjects } from '../stored-objects/unclaimed-objects.ts';
import { checkSend } from './check-send.ts';
import {
  type EnvelopeRecipient,
  envelopeContent,
  type OutboundContent,
  type Submission,
} from './outbound-content.ts';
import { createOutboundMessage, type DraftCreation } from './send.service.ts';

/** A mail client that authenticated with an inbox's password. */
export interface Submitter {
  inboxId: string;
  email: string;
  /** When the password that the client used was set. */
  rotatedAt: Date;
  scope: Scope;
}

const DUPLICATE_WINDOW_MS = 24 * 3_600_000;

interface ParsedSubmission {
  submitter: Submitter;
  mail: ParsedInboundMail;
  files: FileToAttach[];
  submittedKey: string;
  recipients: string[];
}

/**
 * Creates and queues the message of a parsed submission in the caller's transaction, or a draft if a policy requires
 * approval.
 *
 * @returns the id of the message or draft; of the existing one if the same submission was queued before.
 */
export async function queueSubmission(
  transaction: Transaction,
  {
    outbox,
    events,
    drafts,
    sharedDomainLimit,
  }: {
    outbox: Outbox;
    events: EventService;
    drafts: Pick<DraftCreation<string>, 'requestApproval'>;
    sharedDomainLimit?: SharedDomainLimit | undefined;
  },
  { submitter, mail, files, submittedKey, recipients }: ParsedSubmission,
): Promise<string> {
  const { db } = transaction;
  const { scope } = submitter;
  const inbox = await findInbox(db, scope, submitter.inboxId);
  await requireCurrentPassword(db, submitter);
  const duplicateId = await findDuplicate(db, inbox.id, mail.messageId, recipients);
  if (duplicateId) return duplicateId;
  const { content, envelope } = toOutboundContent(mail, recipients);
  const submission = toSubmission(mail, envelope, submittedKey);
  // A refusal commits the transaction, so nothing is recorded before the gate.
  const threadId = await findLinkedThreadId(db, inbox.id, mail);
  const { needsApproval, alarmMessageId } = await checkSend(transaction, events, {
    scope,
    inbox,
    // The whole header is sent, also the fields that the API does not have.
    content: { ...envelopeContent(content, submission), headers: mail.headers },
    threadId,
    sharedDomainLimit,
  });
  await claimObjects(db, [submittedKey]);
  const attach = (draftId: string | null) => attachFiles(db, { scope, inbox, files, draftId });
  if (needsApproval) {
    const fields = { ...content, threadId: null, inReplyTo: null, sendAt: null };
    return drafts.requestApproval(transaction, { scope, inbox, fields, submission, attach, alarmMessageId });
  }
  const { message } = await createSubmittedMessage(transaction, outbox, {
    inbox,
    content,
    submission,
    attachments: await attach(null),
  });
  return message.id;
}

function toSubmission(
  { messageId, inReplyTo, references, from }: ParsedInboundMail,
  envelope: EnvelopeRecipient[],
  storageKey: string,
): Submission {
  return { storageKey, envelope, messageId, inReplyTo, references, fromName: from?.name ?? null };
}

interface SubmittedMessage {
  inbox: Inbox;
  content: OutboundContent;
  submission: Submission;
  attachments: Attachment[];
  /** The draft that waited for approval; null if the submission needed no approval. */
  draftId?: string | null;
}

/** Creates and queues the message of a submission in the caller's transaction, in the thread that its ids name. */
export async function createSubmittedMessage(
  transaction: Transaction,
  outbox: Outbox,
  { inbox, content, submission, attachments, draftId = null }: SubmittedMessage,
): Promise<MessageDetails> {
  const { messageId, inReplyTo, references } = submission;
  const place = await placeMessage(transaction, outbox, {
    inbox,
    mail: { messageId, inReplyTo, references, subject: content.subject ?? '' },
    isTrusted: true,
    correspondents: null,
    at: new Date(),
  });
  return createOutboundMessage(transaction, outbox, {
    inbox,
    content,
    submission,
    place,
    parent: null,
    draftId,
    // The client's own header is sent.
    autoSubmitted: false,
    attachments,
  });
}

/** A password change also ends existing connections, because the old password may have leaked. */
async function requireCurrentPassword(db: Db, { inboxId, rotatedAt }: Submitter): Promise<void> {
  const credential = await db
    .selectFrom('inbox_credentials')
    .select('rotated_at as rotatedAt')
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  if (credential?.rotatedAt.getTime() === rotatedAt.getTime()) return;
  throw new AppError('unauthenticated', {
    detail: 'The password was changed after this connection authenticated.',
    fix: 'Log in again with the new password.',
  });
}

const MAX_CANDIDATES = 20;

/** Calls with the same Message-ID are serialized, so that the second one finds the message of the first one. */
async function findDuplicate(
  db: Db,
  inboxId: string,
  rfcMessageId: string | null,
  recipients: string[],
): Promise<string | null> {
  if (rfcMessageId === null) return null;
  await lockKey(db, 'submission', inboxId, rfcMessageId);
  const candidates = [
    ...(await findQueued(db, inboxId, rfcMessageId)),
    ...(await findWaiting(db, inboxId, rfcMessageId)),
  ];
  const toKey = (addresses: readonly string[]) =>
    JSON.stringify(addresses.map((address) => address.toLowerCase()).sort());
  const expected = toKey(recipients);
  return candidates.find(({ addresses }) => toKey(addresses) === expected)?.id ?? null;
}

interface Candidate {
  id: string;
  /** Recipients of the envelope. */
  addresses: string[];
}

function findQueued(db: Db, inboxId: string, rfcMessageId: string): Promise<Candidate[]> {
  return db
    .selectFrom('messages as m')
    .select([
      'm.id',
      sql<string[]>`array(select email from message_recipients where message_id = m.id)`.as('addresses'),
    ])
    .where('m.inbox_id', '=', inboxId)
    .where('m.rfc_message_id', '=', rfcMessageId)
    .where('m.direction', '=', 'outbound')
    .where('m.created_at', '>=', new Date(Date.now() - DUPLICATE_WINDOW_MS))
    .orderBy('m.id', 'desc')
    .limit(MAX_CANDIDATES)
    .execute();
}

/** The same submission may wait for approval. */
async function findWaiting(db: Db, inboxId: string, rfcMessageId: string): Promise<Candidate[]> {
  const drafts = await db
    .selectFrom('drafts')
    .select(['id', 'submission'])
    .where('inbox_id', '=', inboxId)
    .where(sql<string>`submission ->> 'messageId'`, '=', rfcMessageId)
    .where('submission', 'is not', null)
    .where('send_status', '=', 'pending_approval')
    .orderBy('id', 'desc')
    .limit(MAX_CANDIDATES)
    .execute();
  return drafts.map(({ id, submission }) => ({
    id,
    addresses: submission?.envelope.map(({ email }) => email) ?? [],
  }));
}

/**
 * The header contains the recipients to display, the envelope those to send to. Envelope-only recipients become Bcc.
 */
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
    headers: Object.fromEntries(
      Object.entries(mail.headers).filter(
        ([name, value]) => findCustomHeaderProblem(name, value) === undefined,
      ),
    ),
  };
  return { content, envelope };
}
