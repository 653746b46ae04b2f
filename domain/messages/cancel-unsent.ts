import type { EntityManager } from '@mikro-orm/postgresql';
import type { Message } from './message.entity.ts';
import { RecipientEntity } from './recipient.entity.ts';
import { SendAttemptEntity } from './send-attempt.entity.ts';

/**
 * Cancels a message of which nothing has left. The caller holds the message's row lock; dispatch takes the same lock
 * before each attempt, so a mail is either on its way or canceled, never both.
 *
 * @returns false where it is too late; nothing is changed then.
 */
export async function cancelUnsent(em: EntityManager, message: Message, detail: string): Promise<boolean> {
  if (message.status !== 'queued' && message.status !== 'deferred' && message.status !== 'sending')
    return false;
  const left = await em.count(SendAttemptEntity, {
    messageId: message.id,
    state: { $in: ['attempting', 'accepted', 'ambiguous'] },
  });
  if (left > 0) return false;
  message.status = 'canceled';
  message.statusDetail = detail;
  await em.nativeUpdate(
    RecipientEntity,
    { messageId: message.id, status: { $in: ['pending', 'deferred'] } },
    { status: 'rejected', diagnosticCode: detail, updatedAt: new Date() },
  );
  return true;
}
