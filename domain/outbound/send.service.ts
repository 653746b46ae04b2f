import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { SEND_MESSAGE, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY, type Priority } from '../../workflows/task-queues.contract.ts';
import { attachFiles, saveAttachments } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { type Recipient, RecipientEntity } from '../messages/recipient.entity.ts';
import { recordOwnMessageId } from '../messages/thread-message-id-rows.ts';
import { addToThread, type OpenThread, startThread } from '../messages/thread-summary.ts';
import { createPreview } from '../mime/preview.ts';
import { countWithinLimit } from '../usage/count-usage.ts';
import { cancelSend } from './cancel-send.ts';
import { checkSend } from './check-send.ts';
import {
  addUnsubscribeHeaders,
  buildEnvelope,
  type EnvelopeRecipient,
  type OutboundContent,
  type Submission,
} from './outbound-content.ts';

/** A send that becomes a draft: it waits for its time, for the approval of a person, or for both. */
export interface PendingSend {
  scope: Scope;
  inbox: Row<Inbox>;
  fields: OutboundContent & { threadId: string | null; inReplyTo: string | null; sendAt: Date | null };
  submission?: Submission;
  /** Returns the rows of the files, assigned to the draft. */
  attach(draftId: string): Promise<Attachment[]>;
}

/** Creates the draft of a send. Injected, because `outbound` must not import `drafts`. */
export interface DraftCreation<Draft> {
  /** The draft is sent at `sendAt`, after an approval if a policy requires one. */
  schedule(transaction: Transaction, pending: PendingSend): Promise<Draft>;
  /** The draft waits for an approval. */
  requestApproval(transaction: Transaction, pending: PendingSend): Promise<Draft>;
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
        const { needsApproval, autoSubmitted } = await checkSend(transaction, events, {
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
          return drafts.requestApproval(transaction, { scope, inbox, fields, attach });
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

/** RFC 5322 does not limit References, but header lines are limited: keep the first and the newest ids. */
const MAX_REFERENCES = 50;

export interface OutboundMessageRequest {
  inbox: Inbox;
  content: OutboundContent;
  /** The thread to continue; null starts a new one. */
  place: OpenThread | null;
  /** The message to reply to; sets In-Reply-To and References. */
  parent: Pick<Message, 'rfcMessageId' | 'references'> | null;
  /** The Message-ID of a submitted message, which `placeMessage` has recorded. By default a new one is recorded. */
  rfcMessageId?: string | null;
  /** Rows of the same transaction, in order; they are assigned to the message. */
  attachments?: Attachment[];
  /** The draft that becomes the message. */
  draftId?: string | null;
  /** Mark the message as automatic (RFC 3834). */
  autoSubmitted: boolean;
  /** Default: `urgent`. */
  priority?: Priority;
  /** The envelope, if it differs from `to`, `cc` and `bcc`. */
  envelope?: EnvelopeRecipient[];
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
  {
    inbox,
    content,
    place,
    parent,
    rfcMessageId = null,
    draftId = null,
    attachments = [],
    envelope = buildEnvelope(content),
    autoSubmitted,
    priority,
    now = new Date(),
  }: OutboundMessageRequest,
): Promise<{ message: Message; recipients: Recipient[]; attachments: Attachment[] }> {
  const { em, db } = transaction;
  const id = newId('message');
  const preview = createPreview(content.textBody, content.htmlBody);
  const hasAttachments = attachments.length > 0;
  const thread = await addToThread(
    db,
    place ?? startThread({ inbox, subject: content.subject ?? '', at: now }),
    {
      message: { id, direction: 'outbound', preview, labels: content.labels, hasAttachments },
      correspondents: envelope.map(({ email }) => email),
      at: now,
    },
  );
  const message = createMessage(em, {
    id,
    preview,
    inbox,
    content,
    threadId: thread.id,
    parent,
    rfcMessageId,
    draftId,
    autoSubmitted,
    hasAttachments,
    now,
  });
  if (rfcMessageId === null)
    await recordOwnMessageId(db, { ...message, rfcMessageId: message.rfcMessageId ?? '' });
  const recipients = createRecipients(em, message, envelope);
  const files = attachments.map((file, position) => ({
    ...file,
    messageId: message.id,
    draftId: null,
    position,
  }));
  await saveAttachments(db, files);
  outbox.enqueue(transaction, inbox.organizationId, { start: buildSendStart(message, priority) });
  const { organizationId } = inbox;
  transaction.beforeCommit(() =>
    countWithinLimit(db, { organizationId, counter: 'messages_sent', amount: 1, at: now }),
  );
  return { message, recipients, attachments: files };
}

type MessageFields = Pick<OutboundMessageRequest, 'inbox' | 'content' | 'parent' | 'autoSubmitted'> & {
  id: string;
  preview: string;
  rfcMessageId: string | null;
  draftId: string | null;
  threadId: string;
  hasAttachments: boolean;
  now: Date;
};

function createMessage(
  em: EntityManager,
  {
    id,
    preview,
    inbox,
    content,
    threadId,
    parent,
    rfcMessageId,
    draftId,
    autoSubmitted,
    hasAttachments,
    now,
  }: MessageFields,
): Message {
  const message = em.create(MessageEntity, {
    id,
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    threadId,
    direction: 'outbound',
    status: 'queued',
    fromEmail: inbox.email,
    fromName: inbox.displayName,
    to: content.to,
    cc: content.cc,
    bcc: content.bcc,
    replyTo: content.replyTo,
    subject: content.subject ?? '',
    preview,
    textBody: content.textBody,
    htmlBody: content.htmlBody,
    labels: content.labels,
    headers: content.headers,
    hasAttachments,
    autoSubmitted: autoSubmitted ? (parent ? 'auto-replied' : 'auto-generated') : null,
    draftId,
    rfcMessageId: rfcMessageId ?? `${id}@${inbox.domain}`,
    inReplyTo: parent?.rfcMessageId ?? null,
    references: parent ? buildReferences(parent) : [],
    createdAt: now,
    queuedAt: now,
  });
  em.persist(message);
  return message;
}

function createRecipients(
  em: EntityManager,
  { id: messageId, organizationId, createdAt }: Message,
  envelope: EnvelopeRecipient[],
): Recipient[] {
  const recipients = envelope.map(({ field, email }, position) =>
    em.create(RecipientEntity, { messageId, position, organizationId, field, email, updatedAt: createdAt }),
  );
  em.persist(recipients);
  return recipients;
}

/** RFC 5322 section 3.6.4: the parent's References followed by its Message-ID. */
function buildReferences(parent: Pick<Message, 'rfcMessageId' | 'references'>): string[] {
  if (!parent.rfcMessageId) return [];
  const chain = [...parent.references.filter((id) => id !== parent.rfcMessageId), parent.rfcMessageId];
  const [first, ...rest] = chain;
  return first !== undefined && chain.length > MAX_REFERENCES
    ? [first, ...rest.slice(1 - MAX_REFERENCES)]
    : chain;
}

/**
 * Builds the command that starts `sendMessage`. The reconciler uses it to restart a lost run, and then as urgent: the
 * send is late already.
 */
export function buildSendStart(
  message: Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'>,
  priorityKey: Priority = PRIORITY.urgent,
): StartCommand {
  return {
    workflowType: SEND_MESSAGE,
    workflowId: sendMessageWorkflowId(message.id),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey, fairnessKey: message.organizationId },
    input: { messageId: message.id },
    searchAttributes: {
      OrgId: message.organizationId,
      EnvId: message.environmentId,
      InboxId: message.inboxId,
      ResourceId: message.id,
      RelatedId: message.threadId,
      Stage: 'sending',
    },
    summary: `Send ${message.id}`,
  };
}
