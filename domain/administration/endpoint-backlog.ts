import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { WebhookEndpoint } from '../webhooks/endpoint.entity.ts';

/** An endpoint with what waits for it, as staff see it: without its secret, and without events. */
export interface EndpointBacklog
  extends Pick<
    WebhookEndpoint,
    'id' | 'environmentId' | 'url' | 'disabled' | 'disabledReason' | 'failingSince' | 'consecutiveFailures'
  > {
  /** Deliveries that have a run, and those that wait as rows; each at most {@link MAX_COUNTED}. */
  pending: number;
  held: number;
  /** When the oldest of them was recorded; null if none waits. */
  oldestAt: Date | null;
  /** The job that replays or cancels its deliveries now; null if there is none. */
  runningJobId: string | null;
}

export const MAX_COUNTED = 10_000;
export const MAX_ENDPOINTS = 100;

/** Those whose attempts fail or that are disabled come first. In a transaction of the organization, or of a worker. */
export async function queryEndpointBacklogs(
  reader: RowReader,
  organizationId: string,
): Promise<EndpointBacklog[]> {
  const waiting = (status: 'pending' | 'held') => sql`(
    select count(*)::int as count, min(created_at) as oldest from (
      select created_at from webhook_deliveries d where d.endpoint_id = e.id and d.status = ${status}
      order by d.id limit ${MAX_COUNTED}) rows)`;
  const rows = await reader.execute<SerializedRow<EndpointBacklog>[]>(sql`
    select e.id, e.env_id as "environmentId", e.url, e.disabled, e.disabled_reason as "disabledReason",
      e.failing_since as "failingSince", e.consecutive_failures as "consecutiveFailures",
      pending.count as pending, held.count as held, least(pending.oldest, held.oldest) as "oldestAt",
      (select j.id from webhook_bulk_jobs j where j.endpoint_id = e.id and j.status = 'running') as "runningJobId"
    from (
      select * from webhook_endpoints where org_id = ${organizationId} and deleted_at is null
      order by disabled desc, failing_since nulls last, id limit ${MAX_ENDPOINTS}) e
    cross join lateral ${waiting('pending')} pending cross join lateral ${waiting('held')} held
    order by e.disabled desc, e.failing_since nulls last, e.id`);
  return rows.map((row) => ({
    ...row,
    failingSince: parseTimestamp(row.failingSince),
    oldestAt: parseTimestamp(row.oldestAt),
  }));
}
