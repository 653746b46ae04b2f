import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';

/** An endpoint is disabled when every attempt has failed for this long. */
export const MAX_FAILING_DAYS = 5;

/**
 * Counts a failed attempt. The first one after a success sets `failing_since`.
 *
 * @returns whether the endpoint is already disabled, and whether it has failed long enough to be.
 */
export async function recordFailure(
  em: EntityManager,
  endpointId: string,
): Promise<{ disabled: boolean; failedTooLong: boolean }> {
  const [endpoint] = await em.execute<{ disabled: boolean; failedTooLong: boolean }[]>(
    sql`update webhook_endpoints
     set failing_since = coalesce(failing_since, now()), consecutive_failures = consecutive_failures + 1
     where id = ${endpointId}
     returning disabled, failing_since < now() - ${MAX_FAILING_DAYS} * interval '1 day' as "failedTooLong"`,
  );
  return endpoint ?? { disabled: false, failedTooLong: false };
}

/** A successful attempt resets the failure count and `failing_since`. */
export async function clearFailures(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(
    sql`update webhook_endpoints set failing_since = null, consecutive_failures = 0 where id = ${endpointId}`,
  );
}

export interface DisableEndpointInput {
  endpointId: string;
  reason: string;
  /** The attempt that led to it; part of the notification's deduplication key. */
  attempt: { deliveryId: string; number: number };
}

/** Disables an endpoint, holds its deliveries and notifies the organization's owners. Does nothing if already disabled. */
export async function disableEndpoint(
  transaction: Transaction,
  notifications: NotificationService,
  { endpointId, reason, attempt }: DisableEndpointInput,
): Promise<void> {
  const { em } = transaction;
  const [endpoint] = await em.execute<
    { organizationId: string; environmentId: string; url: string; failingSince: string | null }[]
  >(
    sql`update webhook_endpoints set disabled = true, disabled_reason = ${reason}, updated_at = now()
     where id = ${endpointId} and not disabled and deleted_at is null
     returning org_id as "organizationId", env_id as "environmentId", url,
       to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as "failingSince"`,
  );
  if (!endpoint) return;
  await holdPendingDeliveries(em, endpointId);
  const { organizationId, ...params } = endpoint;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'webhook-endpoint-disabled',
    params: { ...params, endpointId, reason },
    dedupeKey: `webhook-endpoint-disabled/${endpointId}/${attempt.deliveryId}.${attempt.number}`,
  });
}
