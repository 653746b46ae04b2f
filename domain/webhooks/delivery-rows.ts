import type { EntityManager } from '@mikro-orm/postgresql';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import type { Event } from './event.entity.ts';

/**
 * What attempts look at and change, as plain rows: they are read and written for every webhook, and as entities they
 * cost more than the attempt itself.
 */
export type DeliveryRow = Pick<
  WebhookDelivery,
  | 'id'
  | 'organizationId'
  | 'status'
  | 'attempts'
  | 'attemptsBefore'
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
  | 'failuresInRow'
>;
export type EventRow = Pick<
  Event,
  'id' | 'organizationId' | 'environmentId' | 'type' | 'data' | 'test' | 'createdAt'
>;

export type DeliveryChange = Partial<
  Pick<
    WebhookDelivery,
    'status' | 'heldFor' | 'nextAttemptAt' | 'lastStatusCode' | 'lastError' | 'completedAt'
  >
>;

/** Times come as text. */
type Raw<Row> = { [Key in keyof Row]: Date extends Row[Key] ? string | null : Row[Key] };

const DELIVERY = `d.id, d.org_id as "organizationId", d.status, d.attempts, d.attempts_before as "attemptsBefore",
  d.episode, d.next_attempt_at as "nextAttemptAt", d.last_error as "lastError"`;

/** Locks the delivery until the transaction ends. Null: there is none. */
export async function lockDelivery(em: EntityManager, id: string): Promise<DeliveryRow | null> {
  const [row] = await em.execute<Raw<DeliveryRow>[]>(
    `select ${DELIVERY} from webhook_deliveries d where d.id = ? for update`,
    [id],
  );
  return row ? { ...row, nextAttemptAt: timeOf(row.nextAttemptAt) } : null;
}

interface DueRow extends Raw<DeliveryRow> {
  endpointId: string;
  url: string;
  secret: Buffer;
  previousSecret: Buffer | null;
  previousSecretExpiresAt: string | null;
  disabled: boolean;
  deletedAt: string | null;
  failingSince: string | null;
  failuresInRow: number;
  eventId: string;
  eventEnvironmentId: string;
  eventOrganizationId: string;
  type: Event['type'];
  data: Event['data'];
  test: boolean;
  eventCreatedAt: string;
}

export interface DueDelivery {
  delivery: DeliveryRow;
  endpoint: EndpointRow;
  event: EventRow;
}

/** Likewise, with what an attempt needs beside it. */
export async function lockDueDelivery(em: EntityManager, id: string): Promise<DueDelivery | null> {
  const [row] = await em.execute<DueRow[]>(
    `select ${DELIVERY}, e.id as "endpointId", e.url, e.secret, e.previous_secret as "previousSecret",
       e.previous_secret_expires_at as "previousSecretExpiresAt", e.disabled, e.deleted_at as "deletedAt",
       e.failing_since as "failingSince", e.failures_in_row as "failuresInRow",
       v.id as "eventId", v.env_id as "eventEnvironmentId", v.org_id as "eventOrganizationId", v.type, v.data, v.test,
       v.created_at as "eventCreatedAt"
     from webhook_deliveries d
       join webhook_endpoints e on e.id = d.endpoint_id join events v on v.id = d.event_id
     where d.id = ? for update of d`,
    [id],
  );
  if (!row) return null;
  const { organizationId, status, attempts, attemptsBefore, episode, lastError } = row;
  const { url, secret, previousSecret, disabled, failuresInRow, type, data, test } = row;
  return {
    delivery: {
      ...{ id, organizationId, status, attempts, attemptsBefore, episode, lastError },
      nextAttemptAt: timeOf(row.nextAttemptAt),
    },
    endpoint: {
      ...{ id: row.endpointId, url, secret, previousSecret, disabled, failuresInRow },
      previousSecretExpiresAt: timeOf(row.previousSecretExpiresAt),
      deletedAt: timeOf(row.deletedAt),
      failingSince: timeOf(row.failingSince),
    },
    event: {
      ...{ id: row.eventId, type, data, test },
      environmentId: row.eventEnvironmentId,
      organizationId: row.eventOrganizationId,
      createdAt: new Date(row.eventCreatedAt),
    },
  };
}

function timeOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

export async function changeDelivery(em: EntityManager, id: string, change: DeliveryChange): Promise<void> {
  await em.nativeUpdate(WebhookDeliveryEntity, { id }, change);
}
