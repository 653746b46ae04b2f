import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { type Event, EventEntity } from './event.entity.ts';

/** Stores a test event. Nothing subscribes to it: the caller delivers it to the endpoint under test. */
export async function createTestEvent(
  em: EntityManager,
  event: Pick<Event, 'organizationId' | 'environmentId' | 'inboxId' | 'type' | 'data' | 'createdAt'>,
): Promise<Event> {
  const created = em.create(EventEntity, { ...event, id: newId('event'), test: true });
  em.persist(created);
  await em.flush();
  return created;
}
