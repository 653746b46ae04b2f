import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import { buildEnvelope, truncateToFit } from './envelope.ts';
import { type Event, EventEntity } from './event.entity.ts';
import {
  confirmSuspension,
  type EventHold,
  OWNER_HOLD,
  rejectionReasonOf,
  suspendableRow,
} from './event-suspension.ts';
import { type EventDataByType, isOrganizationWide } from './event-types.ts';
import { type InboxEventPosition, redactEventsAbout, redactEventsOfInbox } from './redact-events.ts';

export interface NewEvent<Type extends keyof EventDataByType> {
  organizationId: string;
  environmentId: string;
  inboxId: string | null;
  type: Type;
  data: EventDataByType[Type];
  /** The message or draft that the event is about, if `data` does not name the message. */
  aboutId?: string | undefined;
}

/** An endpoint that gets the event. `isHolding`: its new deliveries wait behind earlier ones. */
export interface Subscriber extends EventHold {
  id: string;
  disabled: boolean;
  isHolding: boolean;
}

export interface EventServiceOptions {
  /** Called after the commit of each event, for the metrics. */
  onRecorded?: ((type: string) => void) | undefined;
  /** Creates the deliveries of an event to the endpoints subscribed to it. Injected, because `webhooks` imports `events`. */
  addDeliveries(
    transaction: Transaction,
    event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>,
    endpoints: readonly Subscriber[],
  ): Promise<void>;
  /**
   * Extends a redaction to deliveries: cancels those that must no longer be sent, and removes the receivers' responses.
   * Injected for the same reason.
   */
  redactDeliveries(transaction: Transaction, eventIds: readonly string[]): Promise<void>;
}

export type EventService = ReturnType<typeof createEventService>;

export function createEventService(options: EventServiceOptions) {
  const { addDeliveries, redactDeliveries, onRecorded } = options;
  return {
    /**
     * Records an event in the caller's transaction, with one delivery for each subscribed endpoint. The deliveries'
     * workflows start after the commit. A delivery to a disabled or failing endpoint is `held`. So is every delivery of
     * a suspended or closed organization, except the announcement of a send that a suspension refused.
     */
    async record<Type extends keyof EventDataByType>(
      transaction: Transaction,
      { organizationId, environmentId, inboxId, type, data, aboutId }: NewEvent<Type>,
    ): Promise<void> {
      const { db } = transaction;
      const fields = { id: newId('event'), organizationId, environmentId, type, createdAt: new Date() };
      const truncated = truncateToFit(buildEnvelope({ ...fields, data })).data;
      const event = { ...fields, inboxId, aboutId: aboutId ?? null, data: truncated };
      const endpoints = await recordEvent(db, event);
      const isReinstated =
        endpoints.some(({ ownerHold }) => ownerHold === 'suspension') &&
        !(await confirmSuspension(db, event));
      const subscribers = isReinstated
        ? endpoints.map((endpoint) => ({ ...endpoint, ownerHold: null }))
        : endpoints;
      await addDeliveries(transaction, event, subscribers);
      if (onRecorded) transaction.afterCommit(() => onRecorded(type));
    },

    /**
     * Removes the content of the events about messages and drafts that are deleted in the caller's transaction, which
     * has locked their rows. Waiting events are delivered without content; only deliveries of `message.received` are
     * canceled.
     */
    async redact(transaction: Transaction, ids: readonly string[]): Promise<void> {
      if (ids.length === 0) return;
      const eventIds = await redactEventsAbout(transaction.db, ids);
      if (eventIds.length > 0) await redactDeliveries(transaction, eventIds);
    },

    /** Removes the content of the next events of an inbox. Returns where to continue; null at the end. */
    async redactInbox(
      transaction: Transaction,
      inboxId: string,
      page: { after: InboxEventPosition; limit: number },
    ): Promise<InboxEventPosition | null> {
      const { ids, next } = await redactEventsOfInbox(transaction.db, inboxId, page);
      if (ids.length > 0) await redactDeliveries(transaction, ids);
      return next;
    },
  };
}

type RecordedEvent = Pick<
  Event,
  'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type' | 'data' | 'createdAt' | 'aboutId'
>;

/** Inserts the event and finds its subscribers in one statement, because every message has one or two events. */
function recordEvent(db: Db, event: RecordedEvent): Promise<Subscriber[]> {
  const { type, data } = event;
  return insertAndFindSubscribers(db, {
    ...event,
    rejectionReason: rejectionReasonOf(data),
    isOrganizationWide: isOrganizationWide(type),
  });
}

interface EventValues extends RecordedEvent {
  rejectionReason: string | null;
  isOrganizationWide: boolean;
}

const insertAndFindSubscribers = compileOnce(
  (db, event: EventValues) =>
    db
      .with('recorded', (cte) =>
        cte.insertInto('events').values({
          id: event.id,
          org_id: event.organizationId,
          env_id: event.environmentId,
          inbox_id: event.inboxId,
          about_id: event.aboutId,
          type: event.type,
          data: json(event.data),
          created_at: event.createdAt,
        }),
      )
      .selectFrom(suspendableRow(event))
      .innerJoin('webhook_endpoints as e', 'e.org_id', 'v.org_id')
      .select([
        'e.id',
        'e.disabled',
        sql<boolean>`e.holding_since is not null`.as('isHolding'),
        OWNER_HOLD.as('ownerHold'),
        isSwitchedOff('webhook_deliveries').as('isSwitchedOff'),
      ])
      .where('e.deleted_at', 'is', null)
      .where(sql<boolean>`e.events @> array[v.type]`)
      .where(sql<boolean>`(e.inbox_ids is null or v.inbox_id = any(e.inbox_ids))`)
      .$if(!event.isOrganizationWide, (query) => query.whereRef('e.env_id', '=', 'v.env_id'))
      .modifyEnd(PREPARED),
  ['isOrganizationWide'],
);

/** Stores a test event. It has no subscribers: the caller delivers it to the endpoint under test. */
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
