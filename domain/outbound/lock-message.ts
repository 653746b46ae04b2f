import { LockMode } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';

/** Locks the message's row until the transaction ends. Returns null if the message does not exist. */
export function lockMessage({ em }: Transaction, messageId: string): Promise<Message | null> {
  return em.findOne(MessageEntity, { id: messageId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
}
