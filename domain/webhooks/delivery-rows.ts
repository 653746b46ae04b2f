import type { EntityManager } from '@mikro-orm/postgresql';
import { type Raw, timeOf } from '../../platform/database/raw-rows.ts';
import type { Event } from '../events/event.entity.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

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

interface AimRow extends Raw<Omit<EndpointRow, 'id'>> {
  endpointId: string;
  eventId: string;
  eventOrganizationId: string;
  environmentId: string;
  type: EventRow['type'];
  data: EventRow['data'];
  test: boolean;
  createdAt: string;
}

export interface DueDelivery {
  delivery: DeliveryRow;
  endpoint: EndpointRow;
  event: EventRow;
}

/**
 * Likewise, with what an attempt needs beside it: in a statement of its own, since one that waits for the lock still
 * sees other rows as they were before it.
 */
export async function lockDueDelivery(em: EntityManager, id: string): Promise<DueDelivery | null> {
  const delivery = await lockDelivery(em, id);
  if (!delivery) return null;
  const [aim] = await em.execute<AimRow[]>(
    `select e.id as "endpointId", e.url, e.secret, e.previous_secret as "previousSecret",
       e.previous_secret_expires_at as "previousSecretExpiresAt", e.disabled, e.deleted_at as "deletedAt",
       e.failing_since as "failingSince", e.failures_in_row as "failuresInRow",
       v.id as "eventId", v.env_id as "environmentId", v.org_id as "eventOrganizationId", v.type, v.data, v.test,
       v.created_at as "createdAt"
     from webhook_deliveries d
       join webhook_endpoints e on e.id = d.endpoint_id join events v on v.id = d.event_id
     where d.id = ?`,
    [id],
  );
  if (!aim) return null;
  const { url, secret, previousSecret, disabled, failuresInRow, type, data, test, environmentId } = aim;
  return {
    delivery,
    endpoint: {
      id: aim.endpointId,
      url,
      secret,
      previousSecret,
      disabled,
      failuresInRow,
      previousSecretExpiresAt: timeOf(aim.previousSecretExpiresAt),
      deletedAt: timeOf(aim.deletedAt),
      failingSince: timeOf(aim.failingSince),
    },
    event: {
      id: aim.eventId,
      organizationId: aim.eventOrganizationId,
      environmentId,
      type,
      data,
      test,
      createdAt: new Date(aim.createdAt),
    },
  };
}

export async function changeDelivery(em: EntityManager, id: string, change: DeliveryChange): Promise<void> {
  await em.nativeUpdate(WebhookDeliveryEntity, { id }, change);
}
