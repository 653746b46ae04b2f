import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type Thread, ThreadEntity } from '../messages/thread.entity.ts';

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
export async function pauseIfLooping(em: EntityManager, thread: Thread, at: Date): Promise<void> {
  if (thread.messageCount <= 2 * MAX_MESSAGES_PER_DIRECTION) return;
  if (thread.sendPausedUntil && thread.sendPausedUntil > at) return;
  const [row] = await em.execute<{ inbound: string; outbound: string }[]>(
    sql`select count(*) filter (where direction = 'inbound') as inbound,
       count(*) filter (where direction = 'outbound') as outbound
     from (
       select direction, created_at from messages where thread_id = ${thread.id}
       order by id desc limit ${MAX_COUNTED_MESSAGES}) newest
     where created_at > ${new Date(at.getTime() - WINDOW_MS)}`,
  );
  const inbound = Number(row?.inbound ?? 0) + 1;
  if (inbound > MAX_MESSAGES_PER_DIRECTION && Number(row?.outbound ?? 0) > MAX_MESSAGES_PER_DIRECTION)
    await em.nativeUpdate(
      ThreadEntity,
      { id: thread.id },
      { sendPausedUntil: new Date(at.getTime() + PAUSE_MS), updatedAt: new Date() },
    );
}
