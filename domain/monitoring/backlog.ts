import { type AliasedExpression, sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { DISABLED_THROUGH_API, FAILING_AFTER_FAILURES } from '../webhooks/endpoint-health.ts';

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
const MAX_COUNTED_ROWS = 10_000;

/** The rows of one kind, and since when each of them has waited; null for kinds without an age. */
interface WaitingRows {
  kind: BacklogKind;
  rows: AliasedExpression<{ since: Date | null }, 'rows'>;
}

const NO_AGE = sql<Date | null>`null::timestamptz`.as('since');
const DAY_AGO = sql<Date>`now() - interval '1 day'`;
const WEEK_AGO = sql<Date>`now() - interval '7 days'`;

// Each query reads a partial index that contains only pending rows, in the order in which they are due.

function selectOutbox(db: Db): WaitingRows[] {
  const live = db.selectFrom('outbox').select('created_at as since').where('dead_at', 'is', null);
  const dead = db.selectFrom('outbox').select('dead_at as since').where('dead_at', 'is not', null);
  return [
    { kind: 'outbox', rows: live.orderBy('available_at').limit(MAX_COUNTED_ROWS).as('rows') },
    { kind: 'outbox_dead', rows: dead.orderBy('dead_at').limit(MAX_COUNTED_ROWS).as('rows') },
  ];
}

const HELD_FOR = [
  'endpoint_failing',
  'usage_limit',
  'suspension',
  'organization_deleted',
  'switched_off',
] as const;

function selectWebhooks(db: Db): WaitingRows[] {
  const pending = db
    .selectFrom('webhook_deliveries')
    .where('status', '=', 'pending')
    .orderBy('next_attempt_at')
    .limit(MAX_COUNTED_ROWS);
  const held = db
    .selectFrom('webhook_deliveries')
    .select('created_at as since')
    .where('status', '=', 'held')
    .orderBy('created_at')
    .limit(MAX_COUNTED_ROWS);
  const endpoints = db.selectFrom('webhook_endpoints').limit(MAX_COUNTED_ROWS);
  return [
    { kind: 'webhook_pending', rows: pending.select('created_at as since').as('rows') },
    {
      kind: 'webhook_due',
      rows: pending.select(NO_AGE).where('next_attempt_at', '<=', sql<Date>`now()`).as('rows'),
    },
    { kind: 'webhook_held_endpoint_disabled', rows: held.where('held_for', 'is', null).as('rows') },
    ...HELD_FOR.map((reason) => ({
      kind: `webhook_held_${reason}` as const,
      rows: held.where('held_for', '=', reason).as('rows'),
    })),
    {
      kind: 'webhook_endpoint_failing',
      rows: endpoints
        .select('holding_since as since')
        .where('holding_since', 'is not', null)
        .where('consecutive_failures', '>=', FAILING_AFTER_FAILURES)
        .orderBy('holding_since')
        .as('rows'),
    },
    {
      kind: 'webhook_endpoint_disabled',
      rows: endpoints
        .select(NO_AGE)
        .where('disabled', '=', true)
        .where('deleted_at', 'is', null)
        .where('disabled_reason', '<>', DISABLED_THROUGH_API)
        .as('rows'),
    },
  ];
}

function selectMail(db: Db): WaitingRows[] {
  return [
    {
      kind: 'inbox_paused',
      rows: db
        .selectFrom('inboxes')
        .select(NO_AGE)
        .where('reputation_paused', '=', true)
        .where('deleted_at', 'is', null)
        // In the order of the index, so that PostgreSQL uses it whatever its statistics say.
        .orderBy('id')
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'unparsed_message',
      rows: db
        .selectFrom('messages')
        .select(NO_AGE)
        .where('parse_error', 'is not', null)
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'receipt',
      rows: db
        .selectFrom('inbound_receipts')
        .select('received_at as since')
        .where('status', '=', 'received')
        .orderBy('received_at')
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'discarded_object',
      rows: db
        .selectFrom('unclaimed_objects')
        .select('due_at as since')
        .where('due_at', '<=', sql<Date>`now()`)
        .orderBy('due_at')
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
  ];
}

function selectNotificationsAndExports(db: Db): WaitingRows[] {
  return [
    {
      kind: 'notification',
      rows: db
        .selectFrom('notifications')
        .select('created_at as since')
        .where('status', 'in', ['pending', 'sending'])
        .orderBy('next_attempt_at')
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'notification_failed',
      rows: db
        .selectFrom('notifications')
        .select(NO_AGE)
        .where('status', '=', 'failed')
        .where('created_at', '>', DAY_AGO)
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'export_failed',
      rows: db
        .selectFrom('exports')
        .select(NO_AGE)
        .where('status', '=', 'failed')
        .where('completed_at', '>', DAY_AGO)
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'metric_delta',
      rows: db.selectFrom('metric_deltas').select(NO_AGE).limit(MAX_COUNTED_ROWS).as('rows'),
    },
  ];
}

function selectBilling(db: Db): WaitingRows[] {
  const reports = db.selectFrom('meter_reports').limit(MAX_COUNTED_ROWS);
  return [
    {
      kind: 'subscription_problem',
      rows: db
        .selectFrom('billing_subscriptions')
        .select(NO_AGE)
        .where('problem', 'is not', null)
        .where('ended_at', 'is', null)
        .limit(MAX_COUNTED_ROWS)
        .as('rows'),
    },
    {
      kind: 'meter_report',
      rows: reports
        .select('created_at as since')
        .where('reported_at', 'is', null)
        .where('refused_at', 'is', null)
        .orderBy('window_start')
        .as('rows'),
    },
    {
      kind: 'meter_report_refused',
      rows: reports
        .select(NO_AGE)
        .where('refused_at', 'is not', null)
        .where('refused_at', '>', WEEK_AGO)
        .as('rows'),
    },
  ];
}

/** Selects unsettled messages, by status. */
function selectUnsettledMessages(db: Db) {
  const unsettled = db
    .selectFrom('messages')
    .select((eb) => ['status', eb.fn.coalesce('queued_at', 'created_at').as('since')])
    .where('status', 'in', ['queued', 'sending', 'deferred', 'needs_attention'])
    .orderBy('updated_at')
    .limit(MAX_COUNTED_ROWS);
  return db
    .selectFrom(unsettled.as('rows'))
    .select((eb) => [
      sql<BacklogKind>`'message_' || rows.status`.as('kind'),
      eb.fn.countAll<number>().as('count'),
      OLDEST_SECONDS,
    ])
    .groupBy('rows.status');
}

const OLDEST_SECONDS = sql<number | null>`extract(epoch from now() - min(rows.since))::float8`.as(
  'oldestSeconds',
);

/** Counts pending work in one statement. */
export function selectBacklog(db: Db) {
  const kinds = [
    ...selectOutbox(db),
    ...selectWebhooks(db),
    ...selectMail(db),
    ...selectNotificationsAndExports(db),
    ...selectBilling(db),
  ];
  return kinds.reduce(
    (backlog, { kind, rows }) =>
      backlog.unionAll(
        db
          .selectFrom(rows)
          .select((eb) => [
            sql<BacklogKind>`${kind}::text`.as('kind'),
            eb.fn.countAll<number>().as('count'),
            OLDEST_SECONDS,
          ]),
      ),
    selectUnsettledMessages(db),
  );
}

/** Needs the worker role, which sees every tenant. */
export async function readBacklog({ db }: Pick<Database, 'db'>): Promise<Backlog[]> {
  const rows = await selectBacklog(db).execute();
  return BACKLOG_KINDS.map(
    (kind) => rows.find((row) => row.kind === kind) ?? { kind, count: 0, oldestSeconds: null },
  );
}
