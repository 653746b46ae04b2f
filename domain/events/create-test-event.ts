import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { type Event, EventEntity } from './event.entity.ts';

/** Stores a test event. Nothing subscribes to it: the caller delivers it to the endpoint under test. */
export function createTestEvent(
  db: Db,
  event: Pick<Event, 'organizationId' | 'environmentId' | 'inboxId' | 'type' | 'data' | 'createdAt'>,
): Promise<Event> {
  return db
    .insertInto('events')
    .values({
      id: newId('event'),
      org_id: event.organizationId,
      env_id: event.environmentId,
      inbox_id: event.inboxId,
      about_id: null,
      type: event.type,
      data: json(event.data),
      test: true,
      created_at: event.createdAt,
    })
    .returning(columnsOf(EventEntity))
    .executeTakeFirstOrThrow(() => new Error('The event was not stored'));
}
