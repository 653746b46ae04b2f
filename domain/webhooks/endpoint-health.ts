import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';

/** An endpoint whose every attempt failed for so long is disabled. */
export const FAILING_DAYS = 5;

/**
 * Counts a failed attempt; the first after a success begins the time the endpoint fails.
 *
 * @returns whether the endpoint is disabled already, and whether it has failed long enough to be.
 */
export async function countFailure(
  em: EntityManager,
  endpointId: string,
): Promise<{ disabled: boolean; hopeless: boolean }> {
  const [endpoint] = await em.execute<{ disabled: boolean; hopeless: boolean }[]>(
    `update webhook_endpoints
     set failing_since = coalesce(failing_since, now()), failures_in_row = failures_in_row + 1
     where id = ?
     returning disabled, failing_since < now() - ? * interval '1 day' as hopeless`,
    [endpointId, FAILING_DAYS],
  );
  return endpoint ?? { disabled: false, hopeless: false };
}

/** A success ends the time an endpoint fails. */
export async function clearFailures(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute('update webhook_endpoints set failing_since = null, failures_in_row = 0 where id = ?', [
    endpointId,
  ]);
}

export interface Disabling {
  endpointId: string;
  reason: string;
  /** The attempt it follows from; names the mail, so that it is sent once. */
  attempt: { deliveryId: string; number: number };
}

/** Disables an endpoint, holds its deliveries and writes to the organization's owners, unless that happened already. */
export async function disableEndpoint(
  transaction: Transaction,
  notifications: NotificationService,
  { endpointId, reason, attempt }: Disabling,
): Promise<void> {
  const { em } = transaction;
  const [endpoint] = await em.execute<
    { organizationId: string; environmentId: string; url: string; failingSince: string | null }[]
  >(
    `update webhook_endpoints set disabled = true, disabled_reason = ?, updated_at = now()
     where id = ? and not disabled and deleted_at is null
     returning org_id as "organizationId", env_id as "environmentId", url,
       to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as "failingSince"`,
    [reason, endpointId],
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
