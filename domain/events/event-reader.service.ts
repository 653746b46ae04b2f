import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxIncludingDeleted } from '../inboxes/find-inbox.ts';
import { type Event, EventEntity } from './event.entity.ts';
import { parsePosition, positionOf, readEvents } from './event-feed.ts';
import { type EventType, MAX_EVENT_BYTES } from './event-types.ts';

export interface EventFilter {
  type?: EventType | undefined;
  inboxId?: string | undefined;
  /** Only events about this message. */
  messageId?: string | undefined;
  /** Recorded before this time. */
  before?: Date | undefined;
  /** Recorded at or after this time. */
  after?: Date | undefined;
  /** Only events after this one, in the requested order. */
  startingAfter?: string | undefined;
}

/** A page of large events ends early and reports that there are more. */
const PAGE_BYTES = 16 * MAX_EVENT_BYTES;

export type EventReaderService = ReturnType<typeof createEventReaderService>;

export function createEventReaderService({ database }: { database: Database }) {
  return {
    /**
     * In the order of {@link readEvents}.
     *
     * @throws AppError `not_found` if a filter names an inbox or event outside the scope.
     */
    list: (
      scope: Scope,
      { type, inboxId, messageId, before, after, startingAfter }: EventFilter,
      page: PageRequest,
    ): Promise<Page<Event>> =>
      database.read(scope, async ({ db }) => {
        if (inboxId !== undefined) await findInboxIncludingDeleted(db, scope, inboxId);
        const [last] = page.after ?? [];
        const start =
          last === undefined && startingAfter !== undefined
            ? positionOf(await findEvent(db, scope, startingAfter))
            : parsePosition(last ?? '');
        const { events, truncated } = await readEvents(db, scope, {
          after: start,
          order: page.order,
          types: type && [type],
          inboxIds: inboxId === undefined ? undefined : [inboxId],
          messageId,
          since: after,
          until: before,
          limit: page.limit + 1,
          maxBytes: PAGE_BYTES,
        });
        const keyOf = (event: Event) => [positionOf(event)];
        const { items, next } = toPage(events, page.limit, keyOf);
        const end = items.at(-1);
        return { items, next: truncated && end ? keyOf(end) : next };
      }),

    /** Returns test events too. @throws AppError `not_found`. */
    get: (scope: Scope, eventId: string): Promise<Event> =>
      database.read(scope, ({ db }) => findEvent(db, scope, eventId)),
  };
}

async function findEvent(db: Db, scope: Scope, eventId: string): Promise<Event> {
  const { organizationId, environmentId, inboxId } = scope;
  const event = await db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('id', '=', eventId)
    .where('org_id', '=', organizationId)
    .where((eb) =>
      inboxId === undefined
        ? // Organization-wide events are visible in every environment.
          eb.or([
            eb('env_id', '=', environmentId),
            eb.and([eb('inbox_id', 'is', null), eb('test', '=', false)]),
          ])
        : eb.and([eb('env_id', '=', environmentId), eb('inbox_id', '=', inboxId)]),
    )
    .executeTakeFirst();
  if (!event) throw notFound('event', eventId);
  return event;
}
