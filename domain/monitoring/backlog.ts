import { raw } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { DISABLED_THROUGH_API } from '../webhooks/endpoint.service.ts';
import { FAILING_AFTER_FAILURES } from '../webhooks/endpoint-health.ts';

/** Pending work across all organizations, for operators. */
export const BACKLOG_KINDS = [
  'outbox',
  'outbox_dead',
  'webhook_pending',
  'webhook_due',
  'webhook_held_endpoint_disabled',
  'webhook_held_endpoint_failing',
  'webhook_held_usage_limit',
  'webhook_held_suspension',
  'webhook_held_organization_deleted',
  'webhook_held_switched_off',
  'webhook_endpoint_failing',
  'webhook_endpoint_disabled',
  'inbox_paused',
  'message_queued',
  'message_sending',
  'message_deferred',
  'message_needs_attention',
  'unparsed_message',
  'receipt',
  'notification',
  'notification_failed',
  'export_failed',
  'subscription_problem',
  'meter_report',
  'meter_report_refused',
  'discarded_object',
  'metric_delta',
] as const;
export type BacklogKind = (typeof BACKLOG_KINDS)[number];

export interface Backlog {
  kind: BacklogKind;
  /** At most {@link MAX_COUNTED_ROWS}. */
  count: number;
  /** Age of the oldest row counted; null for kinds without an age. */
  oldestSeconds: number | null;
}

/** Limits the cost of the count. The exact number above this does not matter. */
export const MAX_COUNTED_ROWS = 10_000;

const boundedRows = (columns: string, rows: string) =>
  `(select ${columns} from ${rows} limit ${MAX_COUNTED_ROWS}) rows`;
const ageSeconds = (column: string) => `extract(epoch from now() - min(${column}))::float8`;

const heldDeliveries = (reason: string, condition: string) =>
  `select 'webhook_held_${reason}', count(*)::int, ${ageSeconds('created_at')}
    from ${boundedRows('created_at', `webhook_deliveries where status = 'held' and ${condition} order by created_at`)}`;

// Each part reads a partial index that contains only pending rows, in the order they are due.
const BACKLOG = `
  select 'outbox' as kind, count(*)::int as count, ${ageSeconds('created_at')} as "oldestSeconds"
    from ${boundedRows('created_at', 'outbox where dead_at is null order by available_at')}
  union all
  select 'outbox_dead', count(*)::int, ${ageSeconds('dead_at')}
    from ${boundedRows('dead_at', 'outbox where dead_at is not null order by dead_at')}
  union all
  select kind, count(*) filter (where kind = 'webhook_pending' or next_attempt_at <= now())::int,
      case kind when 'webhook_pending' then ${ageSeconds('created_at')} end
    from ${boundedRows('created_at, next_attempt_at', `webhook_deliveries where status = 'pending' order by next_attempt_at`)}
      cross join (values ('webhook_pending'), ('webhook_due')) kinds (kind)
    group by kind
  union all
  ${heldDeliveries('endpoint_disabled', 'held_for is null')}
  union all
  ${heldDeliveries('endpoint_failing', `held_for = 'endpoint_failing'`)}
  union all
  ${heldDeliveries('usage_limit', `held_for = 'usage_limit'`)}
  union all
  ${heldDeliveries('suspension', `held_for = 'suspension'`)}
  union all
  ${heldDeliveries('organization_deleted', `held_for = 'organization_deleted'`)}
  union all
  ${heldDeliveries('switched_off', `held_for = 'switched_off'`)}
  union all
  select 'webhook_endpoint_failing', count(*)::int, ${ageSeconds('holding_since')}
    from ${boundedRows(
      'holding_since',
      `webhook_endpoints
        where holding_since is not null and consecutive_failures >= ${FAILING_AFTER_FAILURES} order by holding_since`,
    )}
  union all
  select 'message_' || status, count(*)::int, ${ageSeconds('created_at')}
    from ${boundedRows(
      'status, coalesce(queued_at, created_at) as created_at',
      `messages where status in ('queued', 'sending', 'deferred', 'needs_attention') order by updated_at`,
    )}
    group by status
  union all
  select 'webhook_endpoint_disabled', count(*)::int, null
    from ${boundedRows('1', `webhook_endpoints where disabled and deleted_at is null and disabled_reason <> '${DISABLED_THROUGH_API}'`)}
  union all
  select 'inbox_paused', count(*)::int, null
    from ${boundedRows('1', 'inboxes where send_paused and deleted_at is null')}
  union all
  select 'unparsed_message', count(*)::int, null from ${boundedRows('1', 'messages where parse_error is not null')}
  union all
  select 'notification_failed', count(*)::int, null
    from ${boundedRows('1', `notifications where status = 'failed' and created_at > now() - interval '1 day'`)}
  union all
  select 'export_failed', count(*)::int, null
    from ${boundedRows('1', `exports where status = 'failed' and completed_at > now() - interval '1 day'`)}
  union all
  select 'subscription_problem', count(*)::int, null
    from ${boundedRows('1', 'billing_subscriptions where problem is not null and ended_at is null')}
  union all
  select 'meter_report', count(*)::int, ${ageSeconds('created_at')}
    from ${boundedRows('created_at', 'meter_reports where reported_at is null and refused_at is null order by window_start')}
  union all
  select 'meter_report_refused', count(*)::int, null
    from ${boundedRows('1', `meter_reports where refused_at is not null and refused_at > now() - interval '7 days'`)}
  union all
  select 'receipt', count(*)::int, ${ageSeconds('received_at')}
    from ${boundedRows('received_at', `inbound_receipts where status = 'received' order by received_at`)}
  union all
  select 'notification', count(*)::int, ${ageSeconds('created_at')}
    from ${boundedRows('created_at', `notifications where status in ('pending', 'sending') order by next_attempt_at`)}
  union all
  select 'discarded_object', count(*)::int, ${ageSeconds('due_at')}
    from ${boundedRows('due_at', 'unclaimed_objects where due_at <= now() order by due_at')}
  union all
  select 'metric_delta', count(*)::int, null from ${boundedRows('1', 'metric_deltas')}`;

/** Counts pending work in one statement. Needs the worker role, which sees every tenant. */
export async function readBacklog(database: Pick<Database, 'query'>): Promise<Backlog[]> {
  const rows = await database.query<Backlog>(raw(BACKLOG));
  return BACKLOG_KINDS.map(
    (kind) => rows.find((row) => row.kind === kind) ?? { kind, count: 0, oldestSeconds: null },
  );
}
