import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from './message.entity.ts';

/**
 * Records the `message.received` event in the transaction that makes the message visible. `extractedText` must be
 * loaded.
 */
export async function announceReceived(
  transaction: Transaction,
  events: EventService,
  message: Message,
): Promise<void> {
  message.announced = true;
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
