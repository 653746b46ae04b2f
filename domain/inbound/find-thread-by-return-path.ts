import type { EntityManager } from '@mikro-orm/postgresql';
import { MessageEntity } from '../messages/message.entity.ts';
import type { Receipt } from './receipt.entity.ts';

/**
 * Mail to a return path that is not a report, such as an auto-reply, belongs to the thread of the message in the token.
 *
 * @returns the thread's id.
 */
export async function findThreadByReturnPath(
  em: EntityManager,
  { kind, messageId, inboxId }: Pick<Receipt, 'kind' | 'messageId' | 'inboxId'>,
): Promise<string | null> {
  if (kind !== 'report') return null;
  const message = await em.findOne(MessageEntity, { id: messageId, inboxId }, { fields: ['threadId'] });
  return message?.threadId ?? null;
}
