import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from './message.entity.ts';

type ReceivedMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'threadId'
  | 'fromEmail'
  | 'to'
  | 'subject'
  | 'extractedText'
  | 'hasAttachments'
  | 'receivedAt'
  | 'createdAt'
>;

/**
 * Records the `message.received` event in the transaction that makes the message visible. The caller stores that the message
 * is `announced`.
 */
export async function announceReceived(
  transaction: Transaction,
  events: EventService,
  message: ReceivedMessage,
): Promise<void> {
  await events.record(transaction, {
    organizationId: message.organizationId,
    environmentId: message.environmentId,
    inboxId: message.inboxId,
    type: 'message.received',
    data: {
      message_id: message.id,
      thread_id: message.threadId,
      inbox_id: message.inboxId,
      from_address: message.fromEmail,
      to_addresses: message.to.map(({ email }) => email),
      subject: message.subject,
      extracted_text: message.extractedText ?? '',
      has_attachments: message.hasAttachments,
      received_at: (message.receivedAt ?? message.createdAt).toISOString(),
    },
  });
}
