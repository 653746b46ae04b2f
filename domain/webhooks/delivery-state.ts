import { sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Event } from '../events/event.entity.ts';
import type { WebhookDelivery } from './delivery.entity.ts';

/** The fields of a delivery that attempts read. */
export type DeliveryState = Pick<
  WebhookDelivery,
  | 'id'
  | 'organizationId'
  | 'status'
  | 'attempts'
  | 'priorAttempts'
  | 'generation'
  | 'nextAttemptAt'
  | 'lastError'
>;

/** Locks the delivery until the transaction ends. */
export async function lockDelivery(db: Db, id: string): Promise<DeliveryState | undefined> {
  const [delivery] = await selectAndLock(db, { id });
  return delivery;
}

const selectAndLock = compileOnce((db, { id }: { id: string }) =>
  db
    .selectFrom('webhook_deliveries')
    .select([
      'id',
      'org_id as organizationId',
      'status',
      'attempts',
      'prior_attempts as priorAttempts',
      'generation',
      'next_attempt_at as nextAttemptAt',
      'last_error as lastError',
    ])
    .where('id', '=', id)
    .forUpdate()
    .modifyEnd(PREPARED),
);

/** The fields of a delivery that attempts change. */
export type DeliveryChange = Partial<
  Pick<
    WebhookDelivery,
    'status' | 'heldFor' | 'priorAttempts' | 'nextAttemptAt' | 'lastStatusCode' | 'lastError' | 'completedAt'
  >
>;

export async function updateDelivery(db: Db, id: string, change: DeliveryChange): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({
      status: change.status,
      held_for: change.heldFor,
      prior_attempts: change.priorAttempts,
      next_attempt_at: change.nextAttemptAt,
      last_status_code: change.lastStatusCode,
      last_error: change.lastError,
      completed_at: change.completedAt,
    })
    .where('id', '=', id)
    .execute();
}

/**
 * `settled`: `status` says how the delivery ended or why it waits. `retry`: another attempt is due after `delayMs`.
 * `busy`: like `retry`, but no attempt was made, because no slot is free. `not_due`: none was made, because the last one failed and
 * the next one is not due yet.
 */
export type AttemptOutcome = Settled | Postponed<'retry' | 'busy' | 'not_due'>;

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

/** The result of a run whose delivery has been restarted since, and now belongs to a later run. */
export const SUPERSEDED: Settled = {
  kind: 'settled',
  status: 'superseded',
  detail: 'The delivery was restarted in a later run.',
};

/** Why a delivery of `message.received` was canceled: the message was deleted. */
export const PURGED = 'purged';

/** Whether an event must no longer be delivered, because it announced a message that has been deleted. */
export function isWithdrawn({ type, redacted }: Pick<Event, 'type' | 'redacted'>): boolean {
  return redacted && type === 'message.received';
}

/** SQL: {@link isWithdrawn} for the event `v`. */
export const IS_WITHDRAWN = sql<boolean>`(v.redacted and v.type = 'message.received')`;

/** A held delivery has no run and waits until the endpoint is enabled. */
export const HELD = { status: 'held', heldFor: null, nextAttemptAt: null } satisfies DeliveryChange;
/** The delivery waits until the failing endpoint answers a probe. */
export const HELD_WHILE_FAILING = { ...HELD, heldFor: 'endpoint_failing' } satisfies DeliveryChange;

/** The delivery waits until a suspension ends. */
export const HELD_WHILE_SUSPENDED = { ...HELD, heldFor: 'suspension' } satisfies DeliveryChange;

/** The delivery waits until its organization is recovered. */
export const HELD_WHILE_DELETED = { ...HELD, heldFor: 'organization_deleted' } satisfies DeliveryChange;

/** The delivery waits until staff switch webhook deliveries on again. */
export const HELD_WHILE_SWITCHED_OFF = { ...HELD, heldFor: 'switched_off' } satisfies DeliveryChange;

export function terminalChange(
  status: 'delivered' | 'canceled' | 'blocked' | 'exhausted',
  lastError: string | null,
): DeliveryChange {
  return { status, lastError, nextAttemptAt: null, completedAt: new Date() };
}

export async function settleAs(db: Db, delivery: DeliveryState, change: DeliveryChange): Promise<Settled> {
  await updateDelivery(db, delivery.id, change);
  return settled({ ...delivery, ...change });
}

export function settled(delivery: Pick<DeliveryState, 'status' | 'lastError'>): Settled {
  return { kind: 'settled', status: delivery.status, detail: delivery.lastError ?? '' };
}

/** The delivery waits as its last attempt has decided, or because no slot was free. */
export function notDueYet({ attempts, lastError }: DeliveryState, delayMs: number): AttemptOutcome {
  return lastError === null
    ? { kind: 'busy', delayMs, attempts, detail: 'Waiting for a slot.' }
    : { kind: 'not_due', delayMs, attempts, detail: lastError };
}

export function isSuperseded(delivery: DeliveryState, generation: number | undefined): boolean {
  return generation !== undefined && generation !== delivery.generation;
}

/** The number of attempts that count against the schedule: those since the last restart. */
export function attemptsSinceRestart({ attempts, priorAttempts }: DeliveryState): number {
  return attempts - priorAttempts;
}
