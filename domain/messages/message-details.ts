import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AttachmentEntity } from '../attachments/attachment.entity.ts';
import { MessageEntity, RecipientEntity } from './message.entity.ts';

/** Columns that are read only for a single message and for the full view of a list. */
const CONTENT = ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'] as const;
type Content = (typeof CONTENT)[number];

export const WHOLE_MESSAGE = columnsOf(MessageEntity, { lazy: CONTENT });
export type WholeMessage = RowOf<typeof MessageEntity, Content>;
/** A message with the content that was read, and with all its links if they were asked for. */
export type ListedMessage = RowOf<typeof MessageEntity> &
  Partial<Pick<WholeMessage, Content>> &
  Partial<Pick<RowOf<typeof MessageEntity, 'allLinks'>, 'allLinks'>>;

/** A message with its recipients and attachments. In a list, the message has the content of the requested view. */
export interface MessageDetails {
  message: ListedMessage;
  recipients: RowOf<typeof RecipientEntity>[];
  attachments: RowOf<typeof AttachmentEntity>[];
}

/** Loads the recipients and attachments of all messages in two statements, which run together. */
export async function loadDetailsForAll(
  db: Db,
  messages: readonly ListedMessage[],
): Promise<MessageDetails[]> {
  const [recipients, attachments] = await Promise.all([
    findRecipients(
      db,
      messages.map(({ id }) => id),
    ),
    findAttachments(db, messages),
  ]);
  const recipientsByMessageId = Map.groupBy(recipients, ({ messageId }) => messageId);
  const attachmentsByMessageId = Map.groupBy(attachments, ({ messageId }) => messageId);
  return messages.map((message) => ({
    message,
    recipients: recipientsByMessageId.get(message.id) ?? [],
    attachments: attachmentsByMessageId.get(message.id) ?? [],
  }));
}

export async function loadDetails(db: Db, message: ListedMessage): Promise<MessageDetails> {
  const [details] = await loadDetailsForAll(db, [message]);
  return details ?? { message, recipients: [], attachments: [] };
}

/** Of all messages, each in order. */
export async function findRecipients(
  db: Db,
  messageIds: readonly string[],
): Promise<MessageDetails['recipients']> {
  return messageIds.length === 0 ? [] : selectRecipients(db, { messageIds });
}

const selectRecipients = compileOnce((db, { messageIds }: { messageIds: readonly string[] }) =>
  db
    .selectFrom('message_recipients')
    .select(columnsOf(RecipientEntity))
    .where('message_id', '=', anyOf(messageIds))
    .orderBy('position')
    .modifyEnd(PREPARED),
);

/** Of all messages, each in order. */
export async function findAttachments(
  db: Db,
  messages: readonly Pick<ListedMessage, 'id' | 'hasAttachments'>[],
): Promise<MessageDetails['attachments']> {
  const withFiles = messages.filter(({ hasAttachments }) => hasAttachments).map(({ id }) => id);
  return withFiles.length === 0 ? [] : selectAttachments(db, { messageIds: withFiles });
}

const selectAttachments = compileOnce((db, { messageIds }: { messageIds: readonly string[] }) =>
  db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('message_id', '=', anyOf(messageIds))
    .orderBy('position')
    .modifyEnd(PREPARED),
);
