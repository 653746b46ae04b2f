import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { lockLivingThread, resolveThreadId } from '../messages/resolve-thread.ts';
import type { Thread } from '../messages/thread.entity.ts';
import type { Draft } from './draft.entity.ts';

type Parent = RowOf<typeof MessageEntity>;

export interface DraftTarget {
  /** Locked for the update of its summary. Null if the draft starts a thread. */
  thread: Thread | null;
  parent: Parent | null;
}

/**
 * Finds the message of `in_reply_to` and the thread of `thread_id` in the draft's inbox when the draft is sent. If only
 * a thread is given, the draft replies to its last message.
 *
 * @throws AppError `draft_target_not_found`.
 */
export async function findDraftTarget(db: Db, draft: Draft): Promise<DraftTarget> {
  const { threadId, inReplyTo, inboxId } = draft;
  const parent = inReplyTo === null ? null : await findParent(db, inReplyTo, inboxId);
  if (inReplyTo !== null && !parent) throw targetNotFound('in_reply_to', inReplyTo);
  const targetThreadId = threadId ?? parent?.threadId ?? null;
  if (targetThreadId === null) return { thread: null, parent: null };
  const thread = await lockLivingThread(db, targetThreadId, { inbox_id: inboxId });
  if (!thread) throw targetNotFound('thread_id', targetThreadId);
  const isElsewhere = parent && parent.threadId !== thread.id;
  if (isElsewhere && (await resolveThreadId(db, parent.threadId)) !== thread.id)
    throw targetNotFound('in_reply_to', parent.id, 'in that thread');
  if (parent || thread.lastMessageId === null) return { thread, parent };
  return { thread, parent: await findParent(db, thread.lastMessageId, inboxId) };
}

async function findParent(db: Db, id: string, inboxId: string): Promise<Parent | null> {
  const parent = await db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity))
    .where('id', '=', id)
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  return parent ?? null;
}

function targetNotFound(field: 'thread_id' | 'in_reply_to', value: string, where = 'in the inbox'): AppError {
  return new AppError('draft_target_not_found', {
    detail: `${field} ${value.slice(0, 64)} does not exist ${where}.`,
    fix: `Correct or clear ${field} of the draft (PATCH /api/v1/drafts/{id}) and send it again. The draft is unchanged.`,
    extensions: { field },
  });
}
