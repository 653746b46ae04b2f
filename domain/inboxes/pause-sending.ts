import type { EntityManager } from '@mikro-orm/postgresql';
import { InboxEntity } from './inbox.entity.ts';

/** Pauses sending from an inbox. An inbox that is already paused keeps its reason. */
export async function pauseSending(em: EntityManager, inboxId: string, reason: string): Promise<void> {
  await em.nativeUpdate(
    InboxEntity,
    { id: inboxId, sendPaused: false },
    { sendPaused: true, sendPausedReason: reason, updatedAt: new Date() },
  );
}
