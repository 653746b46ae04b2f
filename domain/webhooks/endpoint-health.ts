import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';
import { buildProbeStart, type ProbedEndpoint, wakeProbe } from './probe-start.ts';

/** An endpoint is disabled when every attempt has failed for this long. */
export const MAX_FAILING_DAYS = 5;
/** Failures in a row after which an endpoint is failing: its deliveries wait as rows, and one run probes it. */
export const FAILING_AFTER_FAILURES = 10;

export function isFailing({ consecutiveFailures }: Pick<WebhookEndpoint, 'consecutiveFailures'>): boolean {
  return consecutiveFailures >= FAILING_AFTER_FAILURES;
}

export interface EndpointHealth {
  disabled: boolean;
  /** It has failed long enough to be disabled. */
  failedTooLong: boolean;
  failing: boolean;
  /** It is failing and no run probes it yet. */
  needsProbe: boolean;
}

/** Counts a failed attempt. The first one after a success sets `failing_since`. */
export async function recordFailure(em: EntityManager, endpointId: string): Promise<EndpointHealth> {
  const [endpoint] = await em.execute<EndpointHealth[]>(
    sql`update webhook_endpoints
     set failing_since = coalesce(failing_since, now()), consecutive_failures = consecutive_failures + 1
     where id = ${endpointId}
     returning disabled, failing_since < now() - ${MAX_FAILING_DAYS} * interval '1 day' as "failedTooLong",
       consecutive_failures >= ${FAILING_AFTER_FAILURES} as failing,
       consecutive_failures = ${FAILING_AFTER_FAILURES}
         or consecutive_failures > ${FAILING_AFTER_FAILURES} and holding_since is null as "needsProbe"`,
  );
  return endpoint ?? { disabled: false, failedTooLong: false, failing: false, needsProbe: false };
}

export type ProbedEndpointRow = Pick<
  WebhookEndpoint,
  'id' | 'organizationId' | 'disabled' | 'deletedAt' | 'consecutiveFailures' | 'holdingSince' | 'probeEpisode'
>;

/** Locks the endpoint until the transaction ends. Events and attempts that only refer to it do not wait. */
export async function lockProbedEndpoint(em: EntityManager, id: string): Promise<ProbedEndpointRow | null> {
  const [row] = await em.execute<SerializedRow<ProbedEndpointRow>[]>(
    sql`select id, org_id as "organizationId", disabled, deleted_at as "deletedAt",
       consecutive_failures as "consecutiveFailures", holding_since as "holdingSince",
       probe_episode as "probeEpisode"
     from webhook_endpoints where id = ${id} for no key update`,
  );
  return row
    ? { ...row, deletedAt: parseTimestamp(row.deletedAt), holdingSince: parseTimestamp(row.holdingSince) }
    : null;
}

const PROBED_COLUMNS = sql`w.id, w.org_id as "organizationId", w.env_id as "environmentId",
  w.probe_episode as "probeEpisode"`;

/**
 * From now on new deliveries are held behind earlier ones, and a new run probes the endpoint and releases them. Does
 * nothing if the endpoint is disabled or deleted.
 */
export async function startHolding(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<void> {
  const [endpoint] = await transaction.em.execute<ProbedEndpoint[]>(
    sql`update webhook_endpoints w
     set holding_since = now(), probe_episode = w.probe_episode + 1, reconciled_at = null
     where w.id = ${endpointId} and not w.disabled and w.deleted_at is null
     returning ${PROBED_COLUMNS}`,
  );
  if (endpoint) outbox.enqueue(transaction, endpoint.organizationId, { start: buildProbeStart(endpoint) });
}

/** Makes the probe of a failing endpoint look at it now; starts one if there is none. */
export async function requestProbe(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<void> {
  const [endpoint] = await transaction.em.execute<ProbedEndpoint[]>(
    sql`select ${PROBED_COLUMNS} from webhook_endpoints w
     where w.id = ${endpointId} and w.holding_since is not null`,
  );
  if (endpoint) wakeProbe(transaction, outbox, endpoint);
  else await startHolding(transaction, outbox, endpointId);
}

/** New deliveries start immediately again. Call it when no earlier delivery waits. */
export async function stopHolding(em: EntityManager, endpointId: string): Promise<void> {
  await em.execute(sql`update webhook_endpoints set holding_since = null where id = ${endpointId}`);
}

/**
 * A successful attempt resets the failure count and `failing_since`.
 *
 * @returns the endpoint if it was failing: its probe now has deliveries to release.
 */
export async function clearFailures(em: EntityManager, endpointId: string): Promise<ProbedEndpoint | null> {
  const [endpoint] = await em.execute<(ProbedEndpoint & { hasBacklog: boolean })[]>(
    sql`with previous as (
       select id, consecutive_failures from webhook_endpoints where id = ${endpointId} for no key update)
     update webhook_endpoints w set failing_since = null, consecutive_failures = 0
     from previous where w.id = previous.id
     returning ${PROBED_COLUMNS},
       previous.consecutive_failures >= ${FAILING_AFTER_FAILURES} and w.holding_since is not null as "hasBacklog"`,
  );
  return endpoint?.hasBacklog ? endpoint : null;
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
    sql`update webhook_endpoints
     set disabled = true, disabled_reason = ${reason}, holding_since = null, updated_at = now()
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
