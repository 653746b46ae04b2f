import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import { buildEnvelope, truncateToFit } from './envelope.ts';
import type { Event } from './event.entity.ts';
import { confirmSuspension, type EventHold, OWNER_HOLD } from './event-suspension.ts';
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

export interface EventService {
  /**
   * Records an event in the caller's transaction, with one delivery for each subscribed endpoint. The deliveries'
   * workflows start after the commit. The delivery to a disabled or failing endpoint is `held`, and so is every delivery of
   * a suspended or closed organization, except the announcement that a suspension has refused a send.
   */
  record<Type extends keyof EventDataByType>(transaction: Transaction, event: NewEvent<Type>): Promise<void>;
  /**
   * Removes the content of the events about messages and drafts that are deleted in the caller's transaction, which has locked
   * their rows. Events that wait for delivery go out without it; only `message.received` is canceled.
   */
  redact(transaction: Transaction, ids: readonly string[]): Promise<void>;
  /** Likewise for the next events of an inbox. Returns where to continue; null at the end. */
  redactInbox(
    transaction: Transaction,
    inboxId: string,
    page: { after: InboxEventPosition; limit: number },
  ): Promise<InboxEventPosition | null>;
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
  /** Creates the delivery of an event to a subscribed endpoint. Passed in, because `webhooks` may import `events`. */
  addDelivery(
    transaction: Transaction,
    event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>,
    endpoint: Subscriber,
  ): void;
  /** Follows a redaction: cancels what must not be delivered any more, and removes what receivers answered. Passed in, likewise. */
  redactDeliveries(transaction: Transaction, eventIds: readonly string[]): Promise<void>;
}

export function createEventService(options: EventServiceOptions): EventService {
  const { addDelivery, redactDeliveries, onRecorded } = options;
  return {
    async record(transaction, { organizationId, environmentId, inboxId, type, data, aboutId = null }) {
      const { em } = transaction;
      const fields = { id: newId('event'), organizationId, environmentId, type, createdAt: new Date() };
      const truncated = truncateToFit(buildEnvelope({ ...fields, data })).data;
      const event = { ...fields, inboxId, aboutId };
      const row = { ...event, createdAt: fields.createdAt.toISOString(), data: truncated };
      const endpoints = await em.execute<Subscriber[]>(
        recordEvent(JSON.stringify(row), isOrganizationWide(type)),
      );
      const isReinstated =
        endpoints.some(({ ownerHold }) => ownerHold === 'suspension') &&
        !(await confirmSuspension(em, { ...event, data: truncated }));
      for (const endpoint of endpoints)
        addDelivery(transaction, event, isReinstated ? { ...endpoint, ownerHold: null } : endpoint);
      if (onRecorded) transaction.afterCommit(() => onRecorded(type));
    },

    async redact(transaction, ids) {
      if (ids.length === 0) return;
      const eventIds = await redactEventsAbout(transaction.em, ids);
      if (eventIds.length > 0) await redactDeliveries(transaction, eventIds);
    },

    async redactInbox(transaction, inboxId, page) {
      const { ids, next } = await redactEventsOfInbox(transaction.em, inboxId, page);
      if (ids.length > 0) await redactDeliveries(transaction, ids);
      return next;
    },
  };
}

/** Inserts the event and finds its subscribers in one statement, because every message has one or two events. */
const recordEvent = (row: string, organizationWide: boolean) => sql`with event as (
    select id, "organizationId" as org_id, "environmentId" as env_id, "inboxId" as inbox_id, "aboutId" as about_id, type,
      data, "createdAt"
    from jsonb_to_record(${row}::jsonb) as (id text, "organizationId" text, "environmentId" text, "inboxId" text,
      "aboutId" text, type text, data jsonb, "createdAt" timestamptz)),
  recorded as (
    insert into events (id, org_id, env_id, inbox_id, about_id, type, data, test, created_at)
    select id, org_id, env_id, inbox_id, about_id, type, data, false, "createdAt" from event)
  select e.id, e.disabled, e.holding_since is not null as "isHolding", ${OWNER_HOLD} as "ownerHold",
    ${isOffSql('webhook_deliveries')} as "isSwitchedOff"
  from event v, webhook_endpoints e
  where e.org_id = v.org_id and e.deleted_at is null and e.events @> array[v.type]
    and (e.inbox_ids is null or v.inbox_id = any (e.inbox_ids))
    and ${organizationWide ? sql`true` : sql`e.env_id = v.env_id`}`;
