import type { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { MessageEntity } from '../messages/message.entity.ts';
import { type Thread, ThreadEntity } from '../messages/thread.entity.ts';
import type { Receipt } from './receipt.entity.ts';

/**
 * Mail to a return path that is not a report, such as an auto-reply, belongs to the thread of the message in the token.
 */
export async function findThreadByReturnPath(
  em: EntityManager,
  { kind, messageId, inboxId }: Pick<Receipt, 'kind' | 'messageId' | 'inboxId'>,
  lockMode: LockMode,
): Promise<Thread | null> {
  if (kind !== 'report') return null;
  const message = await em.findOne(MessageEntity, { id: messageId, inboxId }, { fields: ['threadId'] });
  return message && em.findOne(ThreadEntity, { id: message.threadId }, { lockMode });
}
