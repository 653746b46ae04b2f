import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Event } from '../events/event.entity.ts';
import { type DeliveryChange, type DeliveryRow, updateDelivery } from './delivery-rows.ts';

/**
 * `settled`: `status` says how the delivery ended or why it waits. `retry`: another attempt is due after `delayMs`.
 * `busy`: likewise, but no attempt was made, because the endpoint has no free slot.
 */
export type AttemptOutcome = Settled | Postponed<'retry'> | Postponed<'busy'>;

export interface Settled {
  kind: 'settled';
  status: string;
  detail: string;
}

interface Postponed<Kind extends string> {
  kind: Kind;
  delayMs: number;
  attempts: number;
  detail: string;
}

/** The delivery was deleted with its event or organization. */
export const GONE: Settled = { kind: 'settled', status: 'gone', detail: 'The delivery no longer exists.' };

/** The result of a run whose delivery has been restarted with a later episode. */
export const SUPERSEDED: Settled = {
  kind: 'settled',
  status: 'superseded',
  detail: 'The delivery was restarted in a later run.',
};

/** Why a delivery of `message.received` was canceled: the message was deleted. */
export const PURGED = 'purged';

/** Whether an event is not delivered any more: it announced a message that was deleted. */
export function isWithdrawn({ type, redacted }: Pick<Event, 'type' | 'redacted'>): boolean {
  return redacted && type === 'message.received';
}

/** SQL: likewise, of the event `v`. */
export const IS_WITHDRAWN = sql`(v.redacted and v.type = 'message.received')`;

/** A held delivery has no run and waits until the endpoint is enabled. */
export const HELD = { status: 'held', heldFor: null, nextAttemptAt: null } satisfies DeliveryChange;
/** It waits until the failing endpoint answers a probe. */
export const HELD_WHILE_FAILING = { ...HELD, heldFor: 'endpoint_failing' } satisfies DeliveryChange;

/** It waits until a suspension ends. */
export const HELD_WHILE_SUSPENDED = { ...HELD, heldFor: 'suspension' } satisfies DeliveryChange;

/** It waits until its organization is recovered. */
export const HELD_WHILE_DELETED = { ...HELD, heldFor: 'organization_deleted' } satisfies DeliveryChange;

/** It waits until staff switch webhook deliveries on again. */
export const HELD_WHILE_SWITCHED_OFF = { ...HELD, heldFor: 'switched_off' } satisfies DeliveryChange;

export function terminalChange(
  status: 'delivered' | 'canceled' | 'blocked' | 'exhausted',
  lastError: string | null,
): DeliveryChange {
  return { status, lastError, nextAttemptAt: null, completedAt: new Date() };
}

export async function settleAs(
  em: EntityManager,
  delivery: DeliveryRow,
  change: DeliveryChange,
): Promise<Settled> {
  await updateDelivery(em, delivery.id, change);
  return settled({ ...delivery, ...change });
}

export function settled(delivery: Pick<DeliveryRow, 'status' | 'lastError'>): Settled {
  return { kind: 'settled', status: delivery.status, detail: delivery.lastError ?? '' };
}

export function retryLater(
  delivery: Pick<DeliveryRow, 'attempts' | 'lastError'>,
  delayMs: number,
): AttemptOutcome {
  return { kind: 'retry', delayMs, attempts: delivery.attempts, detail: delivery.lastError ?? 'not due yet' };
}

export function isSuperseded(delivery: DeliveryRow, episode: number | undefined): boolean {
  return episode !== undefined && episode !== delivery.episode;
}

/** The attempts that count against the schedule: those of the current episode. */
export function attemptsInEpisode({ attempts, priorAttempts }: DeliveryRow): number {
  return attempts - priorAttempts;
}
