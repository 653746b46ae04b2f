import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { PRIORITY, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import {
  PROBE_ENDPOINT,
  PROBE_NOW,
  probeEndpointWorkflowId,
} from '../../workflows/webhooks/probe-endpoint.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';

/** An endpoint is disabled when every attempt has failed for this long. */
export const MAX_FAILING_DAYS = 5;
/** Number of consecutive failures after which an endpoint is failing: its deliveries wait as rows, and one run probes it. */
export const FAILING_AFTER_FAILURES = 10;

/** The `disabledReason` of an endpoint that its owner disabled. */
export const DISABLED_THROUGH_API = 'Disabled through the API.';

/** `failing`: it fails, or the service has disabled it, so someone has to act. `paused`: its owner has disabled it. */
export const ENDPOINT_STATES = ['working', 'failing', 'paused'] as const;
export type EndpointState = (typeof ENDPOINT_STATES)[number];

/** The state of a row of `webhook_endpoints`. */
export const ENDPOINT_STATE = sql<EndpointState>`case
  when disabled and disabled_reason = ${DISABLED_THROUGH_API} then 'paused'
  when disabled or consecutive_failures >= ${FAILING_AFTER_FAILURES} then 'failing'
  else 'working'
end`;

export function isFailing({ consecutiveFailures }: Pick<WebhookEndpoint, 'consecutiveFailures'>): boolean {
  return consecutiveFailures >= FAILING_AFTER_FAILURES;
}

export interface EndpointHealth {
  disabled: boolean;
  /** The endpoint has failed long enough to be disabled. */
  failedTooLong: boolean;
  failing: boolean;
  /** The endpoint is failing and no run probes it yet. */
  needsProbe: boolean;
}

/** Counts a failed attempt. The first one after a success sets `failing_since`. */
export async function recordFailure(db: Db, endpointId: string): Promise<EndpointHealth> {
  const health = await db
    .updateTable('webhook_endpoints')
    .set((eb) => ({
      failing_since: eb.fn.coalesce('failing_since', sql<Date>`now()`),
      consecutive_failures: eb('consecutive_failures', '+', 1),
    }))
    .where('id', '=', endpointId)
    .returning([
      'disabled',
      sql<boolean>`failing_since < now() - ${MAX_FAILING_DAYS} * interval '1 day'`.as('failedTooLong'),
      sql<boolean>`consecutive_failures >= ${FAILING_AFTER_FAILURES}`.as('failing'),
      sql<boolean>`consecutive_failures = ${FAILING_AFTER_FAILURES}
        or consecutive_failures > ${FAILING_AFTER_FAILURES} and holding_since is null`.as('needsProbe'),
    ])
    .executeTakeFirst();
  return health ?? { disabled: false, failedTooLong: false, failing: false, needsProbe: false };
}

export type ProbedEndpoint = Pick<
  WebhookEndpoint,
  'id' | 'organizationId' | 'environmentId' | 'probeGeneration'
>;
export type ProbeState = Pick<
  WebhookEndpoint,
  | 'id'
  | 'organizationId'
  | 'disabled'
  | 'deletedAt'
  | 'consecutiveFailures'
  | 'holdingSince'
  | 'probeGeneration'
>;

/**
 * Locks the endpoint until the transaction ends. Events and attempts that only refer to the endpoint do not wait for
 * the lock.
 */
export function lockProbedEndpoint(db: Db, id: string): Promise<ProbeState | undefined> {
  return db
    .selectFrom('webhook_endpoints')
    .select([
      'id',
      'org_id as organizationId',
      'disabled',
      'deleted_at as deletedAt',
      'consecutive_failures as consecutiveFailures',
      'holding_since as holdingSince',
      'probe_generation as probeGeneration',
    ])
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

const PROBED_COLUMNS = [
  'w.id',
  'w.org_id as organizationId',
  'w.env_id as environmentId',
  'w.probe_generation as probeGeneration',
] as const;

/**
 * From now on new deliveries are held behind earlier ones, and a new run probes the endpoint and releases them. Does
 * nothing if the endpoint is disabled or deleted.
 */
export async function startHolding(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<void> {
  const endpoint = await transaction.db
    .updateTable('webhook_endpoints as w')
    .set((eb) => ({
      holding_since: sql`now()`,
      probe_generation: eb('w.probe_generation', '+', 1),
      reconciled_at: null,
    }))
    .where('w.id', '=', endpointId)
    .where('w.disabled', '=', false)
    .where('w.deleted_at', 'is', null)
    .returning(PROBED_COLUMNS)
    .executeTakeFirst();
  if (endpoint) outbox.enqueue(transaction, endpoint.organizationId, { start: buildProbeStart(endpoint) });
}

/** Makes the probe of a failing endpoint run now; starts a probe if there is none. */
export async function requestProbe(
  transaction: Transaction,
  outbox: Outbox,
  endpointId: string,
): Promise<void> {
  const endpoint = await transaction.db
    .selectFrom('webhook_endpoints as w')
    .select(PROBED_COLUMNS)
    .where('w.id', '=', endpointId)
    .where('w.holding_since', 'is not', null)
    .executeTakeFirst();
  if (endpoint) wakeProbe(transaction, outbox, endpoint);
  else await startHolding(transaction, outbox, endpointId);
}

/** Lets new deliveries start immediately again. Call this when no earlier delivery waits. */
export async function stopHolding(db: Db, endpointId: string): Promise<void> {
  await db
    .updateTable('webhook_endpoints')
    .set({ holding_since: null })
    .where('id', '=', endpointId)
    .execute();
}

/**
 * A successful attempt resets the failure count and `failing_since`.
 *
 * @returns the endpoint if it was failing: its probe now has deliveries to release.
 */
export async function clearFailures(db: Db, endpointId: string): Promise<ProbedEndpoint | null> {
  const endpoint = await db
    .with('previous', (cte) =>
      cte
        .selectFrom('webhook_endpoints')
        .select(['id', 'consecutive_failures'])
        .where('id', '=', endpointId)
        .forNoKeyUpdate(),
    )
    .updateTable('webhook_endpoints as w')
    .from('previous')
    .set({ failing_since: null, consecutive_failures: 0 })
    .whereRef('w.id', '=', 'previous.id')
    .returning(PROBED_COLUMNS)
    .returning(
      sql<boolean>`previous.consecutive_failures >= ${FAILING_AFTER_FAILURES} and w.holding_since is not null`.as(
        'hasBacklog',
      ),
    )
    .executeTakeFirst();
  return endpoint?.hasBacklog ? endpoint : null;
}

export interface DisableEndpointInput {
  endpointId: string;
  reason: string;
  /** The attempt that caused this; part of the notification's deduplication key. */
  attempt: { deliveryId: string; number: number };
}

/** Disables an endpoint, holds its deliveries and notifies the organization's owners. Does nothing if already disabled. */
export async function disableEndpoint(
  transaction: Transaction,
  notifications: NotificationService,
  { endpointId, reason, attempt }: DisableEndpointInput,
): Promise<void> {
  const { db } = transaction;
  const endpoint = await db
    .updateTable('webhook_endpoints')
    .set({ disabled: true, disabled_reason: reason, holding_since: null, updated_at: sql`now()` })
    .where('id', '=', endpointId)
    .where('disabled', '=', false)
    .where('deleted_at', 'is', null)
    .returning([
      'org_id as organizationId',
      'env_id as environmentId',
      'url',
      sql<string | null>`to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')`.as(
        'failingSince',
      ),
    ])
    .executeTakeFirst();
  if (!endpoint) return;
  await holdPendingDeliveries(db, endpointId);
  const { organizationId, ...params } = endpoint;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'webhook-endpoint-disabled',
    params: { ...params, endpointId, reason },
    dedupeKey: `webhook-endpoint-disabled/${endpointId}/${attempt.deliveryId}.${attempt.number}`,
  });
}

/** Operators find the run by endpoint (`ResourceId`). */
export function buildProbeStart(endpoint: ProbedEndpoint): StartCommand {
  return {
    workflowType: PROBE_ENDPOINT,
    workflowId: probeEndpointWorkflowId(endpoint.id, endpoint.probeGeneration),
    taskQueue: WEBHOOKS_QUEUE,
    input: { endpointId: endpoint.id, generation: endpoint.probeGeneration },
    priority: { priorityKey: PRIORITY.default, fairnessKey: endpoint.organizationId },
    searchAttributes: {
      OrgId: endpoint.organizationId,
      EnvId: endpoint.environmentId,
      ResourceId: endpoint.id,
      Stage: 'probing',
    },
    summary: `Probe ${endpoint.id}`,
  };
}

/** Makes the run probe the endpoint now. A run that an operator ended is restarted. */
export function wakeProbe(transaction: Transaction, outbox: Outbox, endpoint: ProbedEndpoint): void {
  const start = buildProbeStart(endpoint);
  outbox.enqueue(transaction, endpoint.organizationId, {
    start,
    signal: { workflowId: start.workflowId, signalName: PROBE_NOW, args: [] },
  });
}

/** Endpoints whose deliveries wait for a probe. If an operator stopped the run, it is restarted. */
export function overdueProbes({ db }: Database): OverdueSource {
  return {
    name: 'webhookProbes',
    async take(limit) {
      const overdue = db
        .selectFrom('webhook_endpoints')
        .select('id')
        .where('holding_since', '<', minutesAgo(2))
        .where('disabled', '=', false)
        .where('deleted_at', 'is', null);
      const endpoints = await db
        .updateTable('webhook_endpoints')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit, recheckMinutes: 2 }))
        .returning([
          'id',
          'org_id as organizationId',
          'env_id as environmentId',
          'probe_generation as probeGeneration',
        ])
        .execute();
      return endpoints.map((endpoint) => ({
        start: buildProbeStart(endpoint),
        whenStopped: 'restart' as const,
      }));
    },
  };
}
