import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey, lockKeyShared } from '../../platform/database/advisory-lock.ts';
import { isSuspendedForAbuse } from '../suspensions/abuse-suspension.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import type { Event } from './event.entity.ts';

/** SQL: joins what may be suspended to the event `v`. */
export const JOIN_STATUSES = sql`join organizations o on o.id = v.org_id join environments n on n.id = v.env_id
  left join inboxes i on i.id = v.inbox_id`;
/**
 * SQL, with {@link JOIN_STATUSES}: the event `v` announces that a send was refused because its account is suspended. It is
 * delivered while the suspension lasts, unless that is for abuse: otherwise the owner would learn of it only afterwards.
 */
const ANNOUNCES_SUSPENSION = sql`(v.type = 'message.rejected' and v.data ->> 'rejection_reason' = 'account_paused'
  and o.deleted_at is null and not ${isSuspendedForAbuse(sql`o.id, n.id, i.id`)})`;

/** SQL, with {@link JOIN_STATUSES}: a suspension holds the deliveries of the event `v`. */
export const IS_HELD_BY_SUSPENSION = sql`((o.status <> 'active' or n.status <> 'active' or i.status is not distinct from 'suspended')
  and not ${ANNOUNCES_SUSPENSION})`;

/** Why the deliveries of an event wait for its organization, environment or inbox. */
export type OwnerHold = 'organization_deleted' | 'suspension';

/** SQL: the {@link OwnerHold} of the event `v`, or null. A suspension has to be confirmed: see {@link confirmSuspension}. */
export const OWNER_HOLD = sql`(select case when o.deleted_at is not null then 'organization_deleted'
    when ${IS_HELD_BY_SUSPENSION} then 'suspension' end
  from (select) suspended ${JOIN_STATUSES})`;

/** Names the lock between what a suspension holds and what its end releases. */
const HOLD_LOCK = 'deliveries held for a suspension';

type SuspendableEvent = Pick<Event, 'organizationId' | 'environmentId' | 'inboxId' | 'type' | 'data'>;

/**
 * Reads the statuses again, under a lock that the release takes too: either this transaction sees the reinstatement, or
 * what it holds is committed before the release begins.
 */
export async function confirmSuspension(
  em: EntityManager,
  { organizationId, environmentId, inboxId, type, data }: SuspendableEvent,
): Promise<boolean> {
  await lockSuspensionHolds(em, organizationId);
  const reason = 'rejection_reason' in data ? data.rejection_reason : null;
  const [row] = await em.execute<{ isHeld: boolean }[]>(sql`
    select ${IS_HELD_BY_SUSPENSION} as "isHeld"
    from (values (${organizationId}, ${environmentId}, ${inboxId}, ${type}::text,
      jsonb_build_object('rejection_reason', ${reason}::text))) v (org_id, env_id, inbox_id, type, data) ${JOIN_STATUSES}`);
  return row?.isHeld ?? false;
}

/** Why a new delivery of an event that exists waits, apart from its endpoint. */
export interface EventHold {
  /** A suspension is confirmed: see {@link confirmSuspension}. */
  ownerHold: OwnerHold | null;
  /** Staff have switched webhook deliveries off. */
  isSwitchedOff: boolean;
}

/** @returns the holds of an organization's events, by event id. */
export async function findEventHolds(
  em: EntityManager,
  organizationId: string,
  eventIds: readonly string[],
): Promise<Map<string, EventHold>> {
  if (eventIds.length === 0) return new Map();
  const read = () =>
    em.execute<(EventHold & { id: string })[]>(sql`
      select v.id, ${OWNER_HOLD} as "ownerHold", ${isOffSql('webhook_deliveries')} as "isSwitchedOff"
      from events v where v.org_id = ${organizationId} and v.id in (${[...eventIds]})`);
  let rows = await read();
  if (rows.some(({ ownerHold }) => ownerHold === 'suspension')) {
    await lockSuspensionHolds(em, organizationId);
    rows = await read();
  }
  return new Map(rows.map(({ id, ...hold }) => [id, hold]));
}

export const NOT_HELD: EventHold = { ownerHold: null, isSwitchedOff: false };

/** Until the transaction ends, the release of what a suspension holds does not begin. Statuses have to be read after it. */
export async function lockSuspensionHolds(em: EntityManager, organizationId: string): Promise<void> {
  await lockKeyShared(em, HOLD_LOCK, organizationId);
}

/** Waits until every open transaction that has confirmed a suspension of the organization has ended. */
export async function awaitSuspensionHolds(em: EntityManager, organizationId: string): Promise<void> {
  await lockKey(em, HOLD_LOCK, organizationId);
}
