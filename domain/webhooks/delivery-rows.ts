import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { Event } from '../events/event.entity.ts';
import { confirmSuspension, IS_HELD_BY_SUSPENSION, JOIN_STATUSES } from '../events/event-suspension.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

/**
 * The columns that attempts read and change, as plain rows: they are read and written for every webhook, and loading them
 * as entities would cost more than the attempt itself.
 */
export type DeliveryRow = Pick<
  WebhookDelivery,
  | 'id'
  | 'organizationId'
  | 'status'
  | 'attempts'
  | 'priorAttempts'
  | 'episode'
  | 'nextAttemptAt'
  | 'lastError'
>;
export type EndpointRow = Pick<
  WebhookEndpoint,
  | 'id'
  | 'url'
  | 'secret'
  | 'previousSecret'
  | 'previousSecretExpiresAt'
  | 'disabled'
  | 'deletedAt'
  | 'failingSince'
  | 'consecutiveFailures'
  | 'holdingSince'
>;
export type EventRow = Pick<
  Event,
  'id' | 'organizationId' | 'environmentId' | 'type' | 'data' | 'redacted' | 'test' | 'createdAt'
>;

export type DeliveryChange = Partial<
  Pick<
    WebhookDelivery,
    'status' | 'heldFor' | 'priorAttempts' | 'nextAttemptAt' | 'lastStatusCode' | 'lastError' | 'completedAt'
  >
>;

const DELIVERY_COLUMNS = sql`d.id, d.org_id as "organizationId", d.status, d.attempts, d.prior_attempts as "priorAttempts",
  d.episode, d.next_attempt_at as "nextAttemptAt", d.last_error as "lastError"`;

/** Locks the delivery until the transaction ends. Returns null if it does not exist. */
export async function lockDelivery(em: EntityManager, id: string): Promise<DeliveryRow | null> {
  const [row] = await em.execute<SerializedRow<DeliveryRow>[]>(
    sql`select ${DELIVERY_COLUMNS} from webhook_deliveries d where d.id = ${id} for update`,
  );
  return row ? { ...row, nextAttemptAt: parseTimestamp(row.nextAttemptAt) } : null;
}

interface TargetRow extends SerializedRow<Omit<EndpointRow, 'id'>> {
  endpointId: string;
  eventId: string;
  eventOrganizationId: string;
  environmentId: string;
  inboxId: string | null;
  type: EventRow['type'];
  data: EventRow['data'];
  redacted: boolean;
  test: boolean;
  createdAt: string;
  isOrganizationDeleted: boolean;
  isSuspended: boolean;
  isSwitchedOff: boolean;
}

export interface DueDelivery {
  /** The organization is closed: nothing is delivered until it is recovered. */
  isOrganizationDeleted: boolean;
  /** A suspension affects the event: nothing is delivered until it ends. */
  isSuspended: boolean;
  /** Staff have switched webhook deliveries off. */
  isSwitchedOff: boolean;
  delivery: DeliveryRow;
  endpoint: EndpointRow;
  event: EventRow;
}

/**
 * Locks the delivery and reads its endpoint and event. The second read is a separate statement: a statement that waits
 * for a lock sees all other rows as they were before the wait.
 */
export async function lockDueDelivery(em: EntityManager, id: string): Promise<DueDelivery | null> {
  const delivery = await lockDelivery(em, id);
  if (!delivery) return null;
  const [target] = await em.execute<TargetRow[]>(
    sql`select e.id as "endpointId", e.url, e.secret, e.previous_secret as "previousSecret",
       e.previous_secret_expires_at as "previousSecretExpiresAt", e.disabled, e.deleted_at as "deletedAt",
       e.failing_since as "failingSince", e.consecutive_failures as "consecutiveFailures",
       e.holding_since as "holdingSince",
       v.id as "eventId", v.env_id as "environmentId", v.inbox_id as "inboxId", v.org_id as "eventOrganizationId", v.type, v.data, v.redacted, v.test,
       v.created_at as "createdAt", o.deleted_at is not null as "isOrganizationDeleted",
       ${IS_HELD_BY_SUSPENSION} as "isSuspended", ${isOffSql('webhook_deliveries')} as "isSwitchedOff"
     from webhook_deliveries d
       join webhook_endpoints e on e.id = d.endpoint_id join events v on v.id = d.event_id
       ${JOIN_STATUSES}
     where d.id = ${id}`,
  );
  if (!target) return null;
  const { url, secret, previousSecret, disabled, consecutiveFailures } = target;
  const { type, data, redacted, test, environmentId } = target;
  return {
    delivery,
    isOrganizationDeleted: target.isOrganizationDeleted,
    isSwitchedOff: target.isSwitchedOff,
    isSuspended:
      target.isSuspended &&
      (await confirmSuspension(dbOf(em), { ...target, organizationId: target.eventOrganizationId })),
    endpoint: {
      id: target.endpointId,
      url,
      secret,
      previousSecret,
      disabled,
      consecutiveFailures,
      previousSecretExpiresAt: parseTimestamp(target.previousSecretExpiresAt),
      deletedAt: parseTimestamp(target.deletedAt),
      failingSince: parseTimestamp(target.failingSince),
      holdingSince: parseTimestamp(target.holdingSince),
    },
    event: {
      id: target.eventId,
      organizationId: target.eventOrganizationId,
      environmentId,
      type,
      data,
      redacted,
      test,
      createdAt: new Date(target.createdAt),
    },
  };
}

export async function updateDelivery(em: EntityManager, id: string, change: DeliveryChange): Promise<void> {
  await em.nativeUpdate(WebhookDeliveryEntity, { id }, change);
}
