import { sql } from 'kysely';
import { lockKey, lockKeyShared } from '../../platform/database/advisory-lock.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { hasAbuseSuspension } from '../suspensions/abuse-suspension.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import type { Event } from './event.entity.ts';
import type { EventType } from './event-types.ts';

/** Why the deliveries of an event are held because of its organization, environment or inbox. */
export type OwnerHold = 'organization_deleted' | 'suspension';

/**
 * SQL: the event `v` announces that a send was refused because its organization `o`, environment `n` or inbox `i` is
 * suspended. Such an event is delivered during the suspension, unless the suspension is for abuse; otherwise the owner
 * would learn of the refusal only afterwards.
 */
const ANNOUNCES_SUSPENSION = sql`(v.type = 'message.rejected' and v.data ->> 'rejection_reason' = 'account_paused'
  and o.deleted_at is null and not ${hasAbuseSuspension(sql.ref('o.id'), sql.ref('n.id'), sql.ref('i.id'))})`;

/** SQL for a subquery: joins the organization, environment and inbox of the event `v`. */
const STATUSES = sql`join organizations o on o.id = v.org_id join environments n on n.id = v.env_id
  left join inboxes i on i.id = v.inbox_id`;

/**
 * SQL: a suspension holds the deliveries of the event `v`, whose organization is `o`, environment `n` and inbox, if it has one,
 * `i`.
 */
export const IS_HELD_BY_SUSPENSION = sql<boolean>`((o.status <> 'active' or n.status <> 'active' or i.status is not distinct from 'suspended')
  and not ${ANNOUNCES_SUSPENSION})`;

/**
 * SQL: the {@link OwnerHold} of the event `v`, or null. A suspension has to be confirmed: see {@link confirmSuspension}.
 */
export const OWNER_HOLD = sql<OwnerHold | null>`(
  select case when o.deleted_at is not null then 'organization_deleted' when ${IS_HELD_BY_SUSPENSION} then 'suspension' end
  from (select) suspended ${STATUSES})`;

/** SQL: {@link IS_HELD_BY_SUSPENSION} without the joined rows, for the event `v`. */
const IS_HELD = sql<boolean>`(select ${IS_HELD_BY_SUSPENSION} from (select) suspended ${STATUSES})`;

/** Names the lock that orders holding deliveries for a suspension and releasing them at its end. */
const HOLD_LOCK = 'deliveries held for a suspension';

type SuspendableEvent = Pick<Event, 'organizationId' | 'environmentId' | 'inboxId' | 'type' | 'data'>;

/** SQL: the fields of an event on which holds depend, as the row `v`. The event may not be stored yet. */
export const suspendableRow = ({
  organizationId,
  environmentId,
  inboxId,
  type,
  rejectionReason,
}: Omit<SuspendableEvent, 'data'> & { rejectionReason: string | null }) =>
  sql<SuspendableColumns>`(values (${organizationId}::text, ${environmentId}::text, ${inboxId}::text, ${type}::text,
    jsonb_build_object('rejection_reason', ${rejectionReason}::text)))`.as<'v'>(
    sql`v (org_id, env_id, inbox_id, type, data)`,
  );

/** Why the send that the event announces was rejected; null for every other event. */
export const rejectionReasonOf = (data: Event['data']): string | null =>
  'rejection_reason' in data ? (data.rejection_reason as string) : null;

interface SuspendableColumns {
  org_id: string;
  env_id: string;
  inbox_id: string | null;
  type: EventType;
}

/**
 * Reads the statuses again, under a lock that the release takes too: either this transaction sees the reinstatement, or
 * what it holds is committed before the release begins.
 */
export async function confirmSuspension(db: Db, event: SuspendableEvent): Promise<boolean> {
  await lockSuspensionHolds(db, event.organizationId);
  const row = await db
    .selectFrom(suspendableRow({ ...event, rejectionReason: rejectionReasonOf(event.data) }))
    .select(IS_HELD.as('isHeld'))
    .executeTakeFirst();
  return row?.isHeld ?? false;
}

/** Why a new delivery of an event is held, regardless of its endpoint. */
export interface EventHold {
  /** A suspension is confirmed: see {@link confirmSuspension}. */
  ownerHold: OwnerHold | null;
  /** Staff have switched webhook deliveries off. */
  isSwitchedOff: boolean;
}

/** @returns the holds of an organization's events, by event id. */
export async function findEventHolds(
  db: Db,
  organizationId: string,
  eventIds: readonly string[],
): Promise<Map<string, EventHold>> {
  if (eventIds.length === 0) return new Map();
  const query = db
    .selectFrom('events as v')
    .select(['v.id', OWNER_HOLD.as('ownerHold'), isSwitchedOff('webhook_deliveries').as('isSwitchedOff')])
    .where('v.org_id', '=', organizationId)
    .where('v.id', '=', anyOf(eventIds));
  let rows = await query.execute();
  if (rows.some(({ ownerHold }) => ownerHold === 'suspension')) {
    await lockSuspensionHolds(db, organizationId);
    rows = await query.execute();
  }
  return new Map(rows.map(({ id, ...hold }) => [id, hold]));
}

export const NOT_HELD: EventHold = { ownerHold: null, isSwitchedOff: false };

/** Delays the release of held deliveries until the transaction ends. Read the statuses after this call. */
export async function lockSuspensionHolds(db: Db, organizationId: string): Promise<void> {
  await lockKeyShared(db, HOLD_LOCK, organizationId);
}

/** Waits until every open transaction that has confirmed a suspension of the organization has ended. */
export async function awaitSuspensionHolds(db: Db, organizationId: string): Promise<void> {
  await lockKey(db, HOLD_LOCK, organizationId);
}
