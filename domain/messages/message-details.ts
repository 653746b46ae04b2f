import { findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import type { Message } from './message.entity.ts';
import { type Recipient, RecipientEntity } from './recipient.entity.ts';

/** A message with its recipients and attachments. In lists the message has what its view shows. */
export interface MessageDetails {
  message: Row<Message>;
  recipients: Row<Recipient>[];
  attachments: Row<Attachment>[];
}

/** Loads the recipients and attachments of all messages in two statements. */
export async function loadDetailsForAll(
  reader: RowReader,
  messages: Row<Message>[],
): Promise<MessageDetails[]> {
  const ids = messages.map(({ id }) => id);
  if (ids.length === 0) return [];
  const recipients = await findRows(reader, RecipientEntity, {
    where: { messageId: { $in: ids } },
    orderBy: { position: 'asc' },
  });
  const withFiles = messages.filter(({ hasAttachments }) => hasAttachments).map(({ id }) => id);
  const attachments = withFiles.length
    ? await findRows(reader, AttachmentEntity, {
        where: { messageId: { $in: withFiles } },
        orderBy: { position: 'asc' },
      })
    : [];
  const recipientsByMessageId = Map.groupBy(recipients, ({ messageId }) => messageId);
  const attachmentsByMessageId = Map.groupBy(attachments, ({ messageId }) => messageId);
  return messages.map((message) => ({
    message,
    recipients: recipientsByMessageId.get(message.id) ?? [],
    attachments: attachmentsByMessageId.get(message.id) ?? [],
  }));
}

export async function loadDetails(reader: RowReader, message: Row<Message>): Promise<MessageDetails> {
  const [details] = await loadDetailsForAll(reader, [message]);
  return details ?? { message, recipients: [], attachments: [] };
}
