import type { Db } from '../../platform/database/tables.ts';
import type { Thread } from '../messages/thread.entity.ts';
import { changeThread } from '../messages/thread-summary.ts';

/** More messages than this in each direction within {@link WINDOW_MS} are a loop between two programs. */
const MAX_MESSAGES_PER_DIRECTION = 20;
const WINDOW_MS = 10 * 60_000;
const PAUSE_MS = 60 * 60_000;
/** The newest messages suffice, regardless of the length of the thread. */
const MAX_COUNTED_MESSAGES = 200;

/**
 * Pauses sending in a thread with a mail loop. Called for each received message before it is stored. Queries the
 * database only if the thread is long enough. The caller holds the row lock of the thread.
 */
export async function pauseIfLooping(
  db: Db,
  thread: Pick<Thread, 'id' | 'messageCount' | 'sendPausedUntil'>,
  at: Date,
): Promise<void> {
  if (thread.messageCount <= 2 * MAX_MESSAGES_PER_DIRECTION) return;
  if (thread.sendPausedUntil && thread.sendPausedUntil > at) return;
  const newest = await db
    .selectFrom((eb) =>
      eb
        .selectFrom('messages')
        .select(['direction', 'created_at'])
        .where('thread_id', '=', thread.id)
        .orderBy('id', 'desc')
        .limit(MAX_COUNTED_MESSAGES)
        .as('newest'),
    )
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere('direction', '=', 'inbound').as('inbound'),
      eb.fn.countAll<number>().filterWhere('direction', '=', 'outbound').as('outbound'),
    ])
    .where('created_at', '>', new Date(at.getTime() - WINDOW_MS))
    .executeTakeFirst();
  const inbound = (newest?.inbound ?? 0) + 1;
  const outbound = newest?.outbound ?? 0;
  if (inbound <= MAX_MESSAGES_PER_DIRECTION || outbound <= MAX_MESSAGES_PER_DIRECTION) return;
  await changeThread(db, thread.id, { send_paused_until: new Date(at.getTime() + PAUSE_MS) });
}
