import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { forgetResponses } from '../../platform/idempotency/forget-responses.ts';
import type { EventService } from '../events/event.service.ts';
import type { Message } from './message.entity.ts';

export type ForgetMessages = Pick<EventService, 'redact'>;

/**
 * Removes what is kept of messages elsewhere, in the transaction that deletes them: the content of their events, and stored
 * responses that show them, their files or the drafts that they were. The caller has locked their rows.
 */
export async function forgetMessages(
  transaction: Transaction,
  events: ForgetMessages,
  messages: readonly Pick<Message, 'id' | 'draftId'>[],
): Promise<void> {
  if (messages.length === 0) return;
  const messageIds = messages.map(({ id }) => id);
  const ids = [...messageIds, ...messages.flatMap(({ draftId }) => draftId ?? [])];
  await events.redact(transaction, ids);
  const files = await transaction.db
    .selectFrom('attachments')
    .select('id')
    .where('message_id', '=', anyOf(messageIds))
    .execute();
  await forgetResponses(transaction.db, [...ids, ...files.map(({ id }) => id)]);
}
