import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { CANCEL_SEND, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { attachFiles } from '../attachments/attach-files.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/shared-domain-cap-rows.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInbox, requireActiveInbox } from '../inboxes/find-inbox.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { loadDetails, type MessageDetails } from '../messages/message-details.ts';
import { cancelRemainingRecipients, cancelUnsentMessage } from './cancel-unsent.ts';
import { checkSend } from './check-send.ts';
import { createOutboundMessage } from './create-outbound-message.ts';
import { buildEnvelope, type OutboundContent } from './outbound-content.ts';
import type { DraftCreation } from './pending-send.ts';
import { addUnsubscribeHeaders } from './unsubscribe-headers.ts';

/** @typeParam Draft what `drafts` creates. */
export interface SendService<Draft> {
  /**
   * Queues a message in a new thread. The commit starts `sendMessage`. If a policy requires approval, creates a draft
   * instead, which waits for it.
   *
   * @throws AppError `not_found`, `no_recipients`, `message_rejected`, `*_suspended`, `payload_too_large`,
   * `usage_limit_exceeded`.
   */
  send(
    scope: Scope,
    inboxId: string,
    content: OutboundContent,
    files?: readonly FileToAttach[],
  ): Promise<MessageDetails | Draft>;
  /**
   * Cancels what has not been transmitted: the message, or its remaining recipients if others were already transmitted to.
   * Their transmission and its outcome are not affected.
   *
   * @throws AppError `not_found`, `conflict`, `inbox_suspended`.
   */
  cancel(scope: Scope, messageId: string): Promise<MessageDetails>;
}

export interface SendServiceOptions<Draft> {
  drafts: Pick<DraftCreation<Draft>, 'requestApproval'>;
  database: Database;
  outbox: Outbox;
  events: EventService;
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
  now?: () => Date;
}

export function createSendService<Draft>({
  drafts,
  database,
  outbox,
  events,
  unsubscribeLinks,
  sharedDomainLimit,
  now = () => new Date(),
}: SendServiceOptions<Draft>): SendService<Draft> {
  return {
    send: (scope, inboxId, content, files = []) =>
      database.transaction(scope, async (transaction) => {
        const inbox = await findInbox(transaction.em, scope, inboxId);
        const { needsApproval, autoSubmitted } = await checkSend(transaction, events, {
          scope,
          inbox,
          content,
          sharedDomainLimit,
        });
        const attach = (draftId: string | null) =>
          attachFiles(transaction.em, { scope, inbox, files, draftId });
        if (needsApproval) {
          buildEnvelope(content);
          const fields = { ...content, threadId: null, inReplyTo: null, sendAt: null };
          return drafts.requestApproval(transaction, { scope, inbox, fields, attach });
        }
        return createOutboundMessage(transaction, outbox, {
          inbox,
          content: addUnsubscribeHeaders(content, inbox, unsubscribeLinks),
          thread: null,
          parent: null,
          attachments: await attach(null),
          autoSubmitted,
          now: now(),
        });
      }),

    cancel: (scope, messageId) =>
      database.transaction(scope, (transaction) => cancel(transaction, scope, messageId, outbox)),
  };
}

const CANCELED_DETAIL = 'Canceled through the API.';

async function cancel(
  transaction: Transaction,
  scope: Scope,
  messageId: string,
  outbox: Outbox,
): Promise<MessageDetails> {
  const { em } = transaction;
  const message = await em.findOne(
    MessageEntity,
    { id: messageId, ...withinScope(scope) },
    {
      populate: ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'],
      lockMode: LockMode.PESSIMISTIC_WRITE,
    },
  );
  if (!message) throw notFound('message', messageId);
  await requireActiveInbox(em, message.inboxId);
  const isCanceled =
    message.direction === 'outbound' &&
    ((await cancelUnsentMessage(em, message, CANCELED_DETAIL)) ||
      (await cancelRemainingRecipients(em, message, CANCELED_DETAIL)));
  if (!isCanceled) {
    throw new AppError('conflict', {
      detail: `The message is ${message.status}; only recipients that have not been transmitted to can be canceled.`,
      fix: getCancelFix(message),
      extensions: { message_status: message.status },
    });
  }
  await em.flush();
  outbox.enqueue(transaction, message.organizationId, {
    signal: { workflowId: sendMessageWorkflowId(message.id), signalName: CANCEL_SEND, args: [] },
  });
  return loadDetails(em, message);
}

function getCancelFix({ direction, status }: Message): string {
  if (direction === 'inbound') return 'Only outbound messages can be canceled; delete the message instead.';
  if (status === 'canceled' || status === 'rejected' || status === 'failed')
    return 'No action is needed: the message will not be sent.';
  return 'A transmitted message cannot be recalled; wait for its outcome.';
}
