import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { deleteStoredResponses } from '../../platform/idempotency/delete-stored-responses.ts';
import type { EventService } from '../events/event.service.ts';
import { forgetAlarmAddresses } from './injection-alarms.ts';
import type { Message } from './message.entity.ts';

export type EventRedaction = Pick<EventService, 'redact'>;

/**
 * Removes the copies of message content that other tables hold, in the transaction that deletes the messages: the
 * content of their events, the addresses of their alarms, and stored responses that show the messages, their files or the drafts that became them. The
 * caller has locked the rows of the messages.
 */
export async function eraseMessageCopies(
  transaction: Transaction,
  events: EventRedaction,
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
  await forgetAlarmAddresses(transaction.db, messageIds);
  await deleteStoredResponses(transaction.db, [...ids, ...files.map(({ id }) => id)]);
}
