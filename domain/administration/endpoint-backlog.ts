import type { ExpressionBuilder } from 'kysely';
import type { Db, Tables } from '../../platform/database/tables.ts';
import type { WebhookEndpoint } from '../webhooks/endpoint.entity.ts';

/** An endpoint with its backlog, for staff: without its secret and its events. */
export interface EndpointBacklog
  extends Pick<
    WebhookEndpoint,
    'id' | 'environmentId' | 'url' | 'disabled' | 'disabledReason' | 'failingSince' | 'consecutiveFailures'
  > {
  /** Deliveries that have a run, and those that wait as rows; each at most {@link MAX_COUNTED}. */
  pending: number;
  held: number;
  /** When the oldest waiting delivery was recorded; null if none waits. */
  oldestAt: Date | null;
  /** The job that is replaying or canceling its deliveries; null if there is none. */
  runningJobId: string | null;
}

export const MAX_COUNTED = 10_000;
export const MAX_ENDPOINTS = 100;

/** Failing and disabled endpoints come first. In a transaction of the organization, or of a worker. */
export function findEndpointBacklogs(db: Db, organizationId: string): Promise<EndpointBacklog[]> {
  return db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_endpoints')
        .selectAll()
        .where('org_id', '=', organizationId)
        .where('deleted_at', 'is', null)
        .orderBy('disabled', 'desc')
        .orderBy('failing_since', (order) => order.asc().nullsLast())
        .orderBy('id')
        .limit(MAX_ENDPOINTS)
        .as('e'),
    )
    .innerJoinLateral(
      (eb) => countWaiting(eb, 'pending').as('pending'),
      (join) => join.onTrue(),
    )
    .innerJoinLateral(
      (eb) => countWaiting(eb, 'held').as('held'),
      (join) => join.onTrue(),
    )
    .select((eb) => [
      'e.id',
      'e.env_id as environmentId',
      'e.url',
      'e.disabled',
      'e.disabled_reason as disabledReason',
      'e.failing_since as failingSince',
      'e.consecutive_failures as consecutiveFailures',
      'pending.count as pending',
      'held.count as held',
      eb.fn<Date | null>('least', ['pending.oldest', 'held.oldest']).as('oldestAt'),
      eb
        .selectFrom('webhook_bulk_jobs as j')
        .select('j.id')
        .whereRef('j.endpoint_id', '=', 'e.id')
        .where('j.status', '=', 'running')
        .as('runningJobId'),
    ])
    .orderBy('e.disabled', 'desc')
    .orderBy('e.failing_since', (order) => order.asc().nullsLast())
    .orderBy('e.id')
    .execute();
}

/** SQL: counts the waiting deliveries of the endpoint `e`. */
const countWaiting = (
  eb: ExpressionBuilder<Tables & { e: Tables['webhook_endpoints'] }, 'e'>,
  status: 'pending' | 'held',
) =>
  eb
    .selectFrom(
      eb
        .selectFrom('webhook_deliveries as d')
        .select('d.created_at')
        .whereRef('d.endpoint_id', '=', 'e.id')
        .where('d.status', '=', status)
        .orderBy('d.id')
        .limit(MAX_COUNTED)
        .as('waiting'),
    )
    .select((waiting) => [
      waiting.fn.countAll<number>().as('count'),
      waiting.fn.min('waiting.created_at').as('oldest'),
    ]);
