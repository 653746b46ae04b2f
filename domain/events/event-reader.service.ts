import type { Database } from '../../platform/database/database.ts';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
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

export interface EventReaderService {
  /** In the order of {@link readEvents}. @throws AppError `not_found` if a filter names an inbox or event outside the scope. */
  list(scope: Scope, filter: EventFilter, page: PageRequest): Promise<Page<Row<Event>>>;
  /** Returns test events too. @throws AppError `not_found`. */
  get(scope: Scope, eventId: string): Promise<Row<Event>>;
}

/** A page of large events ends early and reports that there are more. */
const PAGE_BYTES = 16 * MAX_EVENT_BYTES;

export function createEventReaderService({ database }: { database: Database }): EventReaderService {
  return {
    list: (scope, { type, inboxId, messageId, before, after, startingAfter }, page) =>
      database.read(scope, async (reader) => {
        if (inboxId !== undefined) await findInboxIncludingDeleted(reader.db, scope, inboxId);
        const [last] = page.after ?? [];
        const start =
          last === undefined && startingAfter !== undefined
            ? positionOf(await findEvent(reader, scope, startingAfter))
            : parsePosition(last ?? '');
        const { events, truncated } = await readEvents(reader, scope, {
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
        const keyOf = (event: Row<Event>) => [positionOf(event)];
        const { items, next } = toPage(events, page.limit, keyOf);
        const end = items.at(-1);
        return { items, next: truncated && end ? keyOf(end) : next };
      }),

    get: (scope, eventId) => database.read(scope, (reader) => findEvent(reader, scope, eventId)),
  };
}

async function findEvent(reader: RowReader, scope: Scope, eventId: string): Promise<Row<Event>> {
  const event = await findRow(reader, EventEntity, {
    where: [
      { id: eventId, organizationId: scope.organizationId },
      // Organization-wide events are visible in every environment.
      { $or: [withinScope(scope), ...(scope.inboxId === undefined ? [{ inboxId: null, test: false }] : [])] },
    ],
  });
  if (!event) throw notFound('event', eventId);
  return event;
}
