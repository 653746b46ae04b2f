import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { attachFiles, copyAttachments } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import { checkAttachmentLimits } from '../attachments/attachment-limits.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import { columnsWithin, requirePermission, type Scope } from '../identity/scope.ts';
import { findInbox, requireActive } from '../inboxes/find-inbox.ts';
import { ownAddresses } from '../inboxes/inbox-aliases.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { lockLivingThread } from '../messages/resolve-thread.ts';
import type { HtmlConverter } from '../mime/converter/pool.ts';
import { toForwardSubject, toReplySubject } from '../mime/subject.ts';
import { checkSend } from './check-send.ts';
import { addUnsubscribeHeaders, buildEnvelope, type OutboundContent } from './outbound-content.ts';
import { type Bodies, buildForwardBodies, buildReplyBodies } from './quoted-original.ts';
import { addRequestedRecipients, findReplyRecipients } from './reply-recipients.ts';
import type { DraftCreation } from './send.service.ts';
import { createOutboundMessage, type OutboundMessageRequest } from './send.service.ts';

/** The content given by the caller. The service derives the subject, and the recipients of a reply. */
type ReplyContent = Omit<OutboundContent, 'subject'>;

/** When it is sent. */
interface ReplyTime {
  /** Undefined: send immediately. */
  sendAt?: Date | undefined;
  /** Keep it as a draft that a person sends later. */
  asDraft?: boolean;
}

export interface ReplyRequest extends ReplyTime {
  content: Omit<ReplyContent, 'to'>;
  replyAll: boolean;
  files?: readonly FileToAttach[];
}

export interface ForwardRequest extends ReplyTime {
  content: ReplyContent;
  includeAttachments: boolean;
  files?: readonly FileToAttach[];
}

/** @typeParam Draft what `drafts` creates. */
export interface ReplyServiceOptions<Draft> {
  drafts: DraftCreation<Draft>;
  database: Database;
  outbox: Outbox;
  events: EventService;
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
  converter: Pick<HtmlConverter, 'forOrganization'>;
}

export type ReplyService<Draft> = ReturnType<typeof createReplyService<Draft>>;

export function createReplyService<Draft>(options: ReplyServiceOptions<Draft>) {
  const { database } = options;
  const converterOf = (scope: Scope) => options.converter.forOrganization(scope.organizationId);
  // The conversion of HTML may take a second, so no transaction waits for it. The original's content never changes.
  const readOriginal = (scope: Scope, messageId: string) =>
    database.read(scope, ({ db }) => findOriginal(db, scope, messageId));
  return {
    /**
     * Queues a reply in the thread of the message, with the original quoted below. With `sendAt`, or if a policy requires
     * approval, creates a draft instead.
     *
     * @throws AppError `not_found`, `permission_denied`, `no_recipients`, `message_rejected`, `*_suspended`,
     * `payload_too_large`, `validation_error` over 50 recipients, `usage_limit_exceeded`.
     */
    async reply(scope: Scope, messageId: string, request: ReplyRequest): Promise<MessageDetails | Draft> {
      const original = await readOriginal(scope, messageId);
      const bodies = await buildReplyBodies(request.content, original, converterOf(scope));
      return database.transaction(scope, (transaction) =>
        sendReply(transaction, options, { scope, original, request, bodies }),
      );
    },

    /**
     * Queues a message in a new thread with the header, body and files of the original. The new attachment rows share the
     * stored bytes.
     *
     * @throws the same errors as `reply`.
     */
    async forward(scope: Scope, messageId: string, request: ForwardRequest): Promise<MessageDetails | Draft> {
      const original = await readOriginal(scope, messageId);
      const keepInlineImages = request.includeAttachments;
      const bodies = await buildForwardBodies(request.content, original, {
        keepInlineImages,
        converter: converterOf(scope),
      });
      return database.transaction(scope, (transaction) =>
        sendForward(transaction, options, { scope, original, request, bodies }),
      );
    },
  };
}

type Original = RowOf<typeof MessageEntity, 'textBody' | 'htmlBody' | 'headers'>;

/** Requires `messages:read`, because a quote would reveal the text to a key that may only send. */
async function findOriginal(db: Db, scope: Scope, messageId: string): Promise<Original> {
  requirePermission(scope, 'messages:read');
  const original = await db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity, { lazy: ['textBody', 'htmlBody', 'headers'] }))
    .where('id', '=', messageId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .executeTakeFirst();
  if (!original) throw notFound('message', messageId);
  await findInbox(db, scope, original.inboxId);
  return original;
}

async function messageExists(db: Db, messageId: string): Promise<boolean> {
  const message = await db.selectFrom('messages').select('id').where('id', '=', messageId).executeTakeFirst();
  return message !== undefined;
}

interface ReplyContext<Request> {
  scope: Scope;
  original: Original;
  request: Request;
  /** The given bodies with the original. */
  bodies: Bodies;
}

async function sendReply<Draft>(
  transaction: Transaction,
  services: ReplyServiceOptions<Draft>,
  { scope, original, request, bodies }: ReplyContext<ReplyRequest>,
): Promise<MessageDetails | Draft> {
  const { db } = transaction;
  const inbox = await findInbox(db, scope, original.inboxId);
  const { content: requested, replyAll, files = [] } = request;
  const content: OutboundContent = {
    ...requested,
    ...addRequestedRecipients(
      findReplyRecipients(original, { replyAll, ownAddresses: ownAddresses(inbox) }),
      requested,
    ),
    ...bodies,
    subject: toReplySubject(original.subject),
  };
  const thread = await lockLivingThread(db, original.threadId);
  // If the original was deleted in the meantime, the reply would start a new thread.
  if (!thread || !(await messageExists(db, original.id))) throw notFound('message', original.id);
  const attach = (draftId: string | null) => attachFiles(db, { scope, inbox, files, draftId });
  const message = { inbox, content, place: { thread, isNew: false }, parent: original };
  const { sendAt, asDraft } = request;
  return sendOrSchedule(transaction, services, { scope, message, attach, sendAt, asDraft });
}

async function sendForward<Draft>(
  transaction: Transaction,
  services: ReplyServiceOptions<Draft>,
  { scope, original, request, bodies }: ReplyContext<ForwardRequest>,
): Promise<MessageDetails | Draft> {
  const { db } = transaction;
  const inbox = await findInbox(db, scope, original.inboxId);
  const { content: requested, includeAttachments, files = [] } = request;
  const content: OutboundContent = {
    ...requested,
    ...bodies,
    subject: toForwardSubject(original.subject),
  };
  const attach = async (draftId: string | null) => {
    const copies = includeAttachments ? await copyAttachments(db, original.id, inbox) : [];
    // If the original was deleted while this transaction waited for the lock on its files, the message would lack them.
    if (original.hasAttachments && !(await messageExists(db, original.id)))
      throw notFound('message', original.id);
    const added = await attachFiles(db, { scope, inbox, files, draftId, copies });
    const all = [...copies, ...added].map((row, position) => Object.assign(row, { draftId, position }));
    checkAttachmentLimits(all, 'Send fewer files, or set include_attachments to false.');
    return all;
  };
  const message = { inbox, content, place: null, parent: null };
  const { sendAt, asDraft } = request;
  return sendOrSchedule(transaction, services, {
    scope,
    message,
    attach,
    sendAt,
    asDraft,
    forwardedMessageId: original.id,
  });
}

interface SendOrSchedule {
  scope: Scope;
  message: Omit<OutboundMessageRequest, 'autoSubmitted' | 'parent'> & { parent: Original | null };
  attach(draftId: string | null): Promise<Attachment[]>;
  sendAt: Date | undefined;
  asDraft: boolean | undefined;
  forwardedMessageId?: string;
}

/** Runs the send gate, then creates the message with its attachments; or a draft that is sent later or after approval. */
async function sendOrSchedule<Draft>(
  transaction: Transaction,
  { outbox, events, unsubscribeLinks, sharedDomainLimit, drafts }: ReplyServiceOptions<Draft>,
  { scope, message, attach, sendAt, asDraft, forwardedMessageId }: SendOrSchedule,
): Promise<MessageDetails | Draft> {
  const { inbox, content, place, parent } = message;
  const threadId = place?.thread.id ?? null;
  const target = { threadId, inReplyTo: parent?.id ?? null, forwardedMessageId: forwardedMessageId ?? null };
  const pending = { scope, inbox, fields: { ...content, ...target, sendAt: sendAt ?? null }, attach };
  if (asDraft) {
    requireActive(inbox);
    return drafts.schedule(transaction, pending);
  }
  if (sendAt) {
    buildEnvelope(content);
    return drafts.schedule(transaction, pending);
  }
  const { needsApproval, alarmMessageId, autoSubmitted } = await checkSend(transaction, events, {
    scope,
    inbox,
    content,
    threadId,
    parent,
    forwardedMessageId,
    sharedDomainLimit,
  });
  if (needsApproval) {
    buildEnvelope(content);
    return drafts.requestApproval(transaction, { ...pending, alarmMessageId });
  }
  return createOutboundMessage(transaction, outbox, {
    ...message,
    autoSubmitted,
    content: addUnsubscribeHeaders(content, inbox, unsubscribeLinks),
    attachments: await attach(null),
  });
}
