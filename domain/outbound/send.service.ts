import { sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Priority } from '../../workflows/task-queues.contract.ts';
import { attachFiles, saveAttachments } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message, Recipient } from '../messages/message.entity.ts';
import type { MessageDetails, WholeMessage } from '../messages/message-details.ts';
import { hashMessageId } from '../messages/message-ids.ts';
import { insertOwnMessageId } from '../messages/thread-message-id-rows.ts';
import { addToThread, type OpenThread, startThread } from '../messages/thread-summary.ts';
import { domainOf } from '../mime/mail-address.ts';
import { NO_INJECTION } from '../mime/message-findings.ts';
import { createPreview } from '../mime/preview.ts';
import { countWithinLimit } from '../usage/count-usage.ts';
import { cancelSend } from './cancel-send.ts';
import { checkSend } from './check-send.ts';
import {
  addUnsubscribeHeaders,
  buildEnvelope,
  buildReferences,
  type OutboundContent,
  type Submission,
} from './outbound-content.ts';
import { type RepliedTo, senderAddress } from './sender-address.ts';
import { buildSendStart } from './workflow-commands.ts';

/** A send that becomes a draft: it waits for its time, for the approval of a person, or for both. */
export interface PendingSend {
  scope: Scope;
  inbox: Inbox;
  fields: OutboundContent & {
    threadId: string | null;
    inReplyTo: string | null;
    forwardedMessageId?: string | null;
    sendAt: Date | null;
  };
  submission?: Submission;
  /** Returns the rows of the files, assigned to the draft. */
  attach(draftId: string): Promise<Attachment[]>;
}

/** Creates the draft of a send. Injected, because `outbound` must not import `drafts`. */
export interface DraftCreation<Draft> {
  /** The draft is sent at `sendAt`, after an approval if a policy requires one; without a time it waits for a person. */
  schedule(transaction: Transaction, pending: PendingSend): Promise<Draft>;
  /** The draft waits for an approval. `alarmMessageId`: the received message whose alarm demands it; null if a policy does. */
  requestApproval(
    transaction: Transaction,
    pending: PendingSend & { alarmMessageId: string | null },
  ): Promise<Draft>;
}

/** @typeParam Draft what `drafts` creates. */
export interface SendServiceOptions<Draft> {
  drafts: Pick<DraftCreation<Draft>, 'requestApproval'>;
  database: Database;
  outbox: Outbox;
  events: EventService;
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
  now?: () => Date;
}

export type SendService<Draft> = ReturnType<typeof createSendService<Draft>>;

export function createSendService<Draft>({
  drafts,
  database,
  outbox,
  events,
  unsubscribeLinks,
  sharedDomainLimit,
  now = () => new Date(),
}: SendServiceOptions<Draft>) {
  return {
    /**
     * Queues a message in a new thread. The commit starts `sendMessage`. If a policy requires approval, creates a draft
     * instead, which waits for it.
     *
     * @throws AppError `not_found`, `no_recipients`, `message_rejected`, `*_suspended`, `payload_too_large`,
     * `usage_limit_exceeded`.
     */
    send: (
      scope: Scope,
      inboxId: string,
      content: OutboundContent,
      files: readonly FileToAttach[] = [],
    ): Promise<MessageDetails | Draft> =>
      database.transaction(scope, async (transaction) => {
        const inbox = await findInbox(transaction.db, scope, inboxId);
        const { needsApproval, alarmMessageId, autoSubmitted } = await checkSend(transaction, events, {
          scope,
          inbox,
          content,
          sharedDomainLimit,
        });
        const attach = (draftId: string | null) =>
          attachFiles(transaction.db, { scope, inbox, files, draftId });
        if (needsApproval) {
          buildEnvelope(content);
          const fields = { ...content, threadId: null, inReplyTo: null, sendAt: null };
          return drafts.requestApproval(transaction, { scope, inbox, fields, attach, alarmMessageId });
        }
        return createOutboundMessage(transaction, outbox, {
          inbox,
          content: addUnsubscribeHeaders(content, inbox, unsubscribeLinks),
          place: null,
          parent: null,
          attachments: await attach(null),
          autoSubmitted,
          now: now(),
        });
      }),

    /** See {@link cancelSend}. */
    cancel: (scope: Scope, messageId: string): Promise<MessageDetails> =>
      database.transaction(scope, (transaction) => cancelSend(transaction, outbox, scope, messageId)),
  };
}

export interface OutboundMessageRequest {
  inbox: Inbox;
  content: OutboundContent;
  /** The thread to continue; null starts a new one. */
  place: OpenThread | null;
  /** The message to reply to; sets In-Reply-To and References. */
  parent: (RepliedTo & Pick<Message, 'rfcMessageId' | 'references'>) | null;
  /** For a message that was submitted over SMTP; its Message-ID, if it has one, is recorded by `placeMessage`. */
  submission?: Submission;
  /** Rows of the same transaction, in order; they are assigned to the message. */
  attachments?: Attachment[];
  /** The draft that becomes the message. */
  draftId?: string | null;
  /** Mark the message as automatic (RFC 3834). */
  autoSubmitted: boolean;
  /** Default: `urgent`. */
  priority?: Priority;
  now?: Date;
}

/**
 * Creates the message with its recipients, adds it to a thread, and enqueues the command that starts `sendMessage` when
 * the caller's transaction commits. The message is counted right before the commit, which fails with
 * `usage_limit_exceeded` if the organization has reached its limit.
 *
 * @throws AppError `no_recipients`, `validation_error`.
 */
export async function createOutboundMessage(
  transaction: Transaction,
  outbox: Outbox,
  request: OutboundMessageRequest,
): Promise<MessageDetails> {
  const { db } = transaction;
  const { inbox, content, place, submission, attachments = [], priority, now = new Date() } = request;
  const { organizationId } = inbox;
  const envelope = submission?.envelope ?? buildEnvelope(content);
  const start = place ?? startThread({ inbox, subject: content.subject ?? '', at: now });
  const message = buildMessage(request, { threadId: start.thread.id, now });
  await addToThread(db, start, { message, correspondents: envelope.map(({ email }) => email), at: now });
  const recipients = envelope.map(
    ({ field, email }, position): Recipient => ({
      messageId: message.id,
      position,
      organizationId,
      field,
      email,
      status: 'pending',
      statusCode: null,
      diagnosticCode: null,
      sentAt: null,
      updatedAt: now,
    }),
  );
  await insertMessage(db, { message, recipients, isIdRecorded: (submission?.messageId ?? null) !== null });
  const files = attachments.map((file, position) => ({
    ...file,
    messageId: message.id,
    draftId: null,
    position,
  }));
  await saveAttachments(db, files);
  outbox.enqueue(transaction, organizationId, { start: buildSendStart(message, priority) });
  transaction.beforeCommit(() =>
    countWithinLimit(db, { organizationId, counter: 'messages_sent', amount: 1, at: now }),
  );
  return { message, recipients, attachments: files };
}

function buildMessage(
  {
    inbox,
    content,
    parent,
    submission,
    attachments = [],
    draftId = null,
    autoSubmitted,
  }: OutboundMessageRequest,
  { threadId, now }: { threadId: string; now: Date },
): WholeMessage {
  const id = newId('message');
  const fromEmail = senderAddress(inbox, parent);
  return {
    id,
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    threadId,
    direction: 'outbound',
    status: 'queued',
    statusDetail: null,
    fromEmail,
    fromName: submission ? submission.fromName : inbox.displayName,
    to: content.to,
    cc: content.cc,
    bcc: content.bcc,
    replyTo: content.replyTo,
    deliveredTo: null,
    subject: content.subject ?? '',
    preview: createPreview(content.textBody, content.htmlBody),
    textBody: content.textBody,
    htmlBody: content.htmlBody,
    extractedText: null,
    hiddenText: null,
    codes: [],
    injection: NO_INJECTION,
    injectionDismissedAt: null,
    injectionDismissedBy: null,
    links: [],
    hasMoreLinks: false,
    invites: [],
    findingsVersion: 0,
    labels: content.labels,
    hasAttachments: attachments.length > 0,
    rfcMessageId: submission?.messageId ?? `${id}@${domainOf(fromEmail)}`,
    inReplyTo: submission ? submission.inReplyTo : (parent?.rfcMessageId ?? null),
    references: submission ? submission.references : parent ? buildReferences(parent) : [],
    draftId,
    autoSubmitted: autoSubmitted ? (parent ? 'auto-replied' : 'auto-generated') : null,
    providerMessageId: null,
    sizeBytes: 0,
    headers: content.headers,
    authentication: null,
    spam: null,
    automated: false,
    signals: [],
    announced: true,
    parseError: null,
    rawKey: null,
    submittedKey: submission?.storageKey ?? null,
    tracked: false,
    reconciledAt: null,
    createdAt: now,
    updatedAt: now,
    queuedAt: now,
    sentAt: null,
    deliveredAt: null,
    bouncedAt: null,
    complainedAt: null,
    receivedAt: null,
  };
}

interface NewMessage {
  message: WholeMessage;
  recipients: readonly Recipient[];
  isIdRecorded: boolean;
}

/** Inserts the message, its recipients and its Message-ID in one statement. The other columns have their defaults. */
async function insertMessage(db: Db, { message, recipients, isIdRecorded }: NewMessage): Promise<void> {
  const { rfcMessageId } = message;
  await insertWithRecipients(db, {
    ...message,
    recipients: JSON.stringify(recipients.map(({ position, field, email }) => ({ position, field, email }))),
    recordedIdHash: isIdRecorded || rfcMessageId === null ? null : hashMessageId(rfcMessageId),
  });
}

interface MessageValues extends WholeMessage {
  /** JSON of their positions, fields and addresses. */
  recipients: string;
  /** Null if the Message-ID is recorded already, or there is none. */
  recordedIdHash: string | null;
}

const insertWithRecipients = compileOnce((db, { recipients, recordedIdHash, ...message }: MessageValues) =>
  db
    .with('recipients', (query) =>
      query
        .insertInto('message_recipients')
        .columns(['message_id', 'position', 'org_id', 'field', 'email', 'updated_at'])
        .expression(
          db
            .selectFrom(
              sql<
                Pick<Recipient, 'position' | 'field' | 'email'>
              >`jsonb_to_recordset(${recipients}::jsonb)`.as<'v'>(
                sql`v(position int, field text, email text)`,
              ),
            )
            .select([
              sql<string>`${message.id}::text`.as('message_id'),
              'v.position',
              sql<string>`${message.organizationId}::text`.as('org_id'),
              'v.field',
              'v.email',
              sql<Date>`${message.updatedAt}::timestamptz`.as('updated_at'),
            ]),
        ),
    )
    .with('own_id', () => insertOwnMessageId(db, message, recordedIdHash))
    .insertInto('messages')
    .values({
      id: message.id,
      org_id: message.organizationId,
      env_id: message.environmentId,
      inbox_id: message.inboxId,
      thread_id: message.threadId,
      direction: message.direction,
      status: message.status,
      from_email: message.fromEmail,
      from_name: message.fromName,
      to: json(message.to),
      cc: json(message.cc),
      bcc: json(message.bcc),
      reply_to: json(message.replyTo),
      subject: message.subject,
      preview: message.preview,
      text_body: message.textBody,
      html_body: message.htmlBody,
      labels: message.labels,
      has_attachments: message.hasAttachments,
      rfc_message_id: message.rfcMessageId,
      in_reply_to: message.inReplyTo,
      reference_ids: message.references,
      draft_id: message.draftId,
      auto_submitted: message.autoSubmitted,
      headers: json(message.headers),
      submitted_key: message.submittedKey,
      created_at: message.createdAt,
      updated_at: message.updatedAt,
      queued_at: message.queuedAt,
    })
    .modifyEnd(PREPARED),
);
