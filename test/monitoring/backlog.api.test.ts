import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { BACKLOG_KINDS, readBacklog, selectBacklog } from '../../domain/monitoring/backlog.ts';
import { type Connection, typeConnection } from '../../platform/database/typed-connection.ts';
import { installBacklogMetrics } from '../../workers/worker-metrics.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { arrangeDeliveries } from '../support/webhook-deliveries.ts';

const database = useWorkerDatabase();

test('reports every kind and the age of the oldest message', async () => {
  const { send } = await arrangeSending(database);
  await send('ada@people.example');
  const backlog = await readBacklog(database);
  expect(backlog.map(({ kind }) => kind)).toEqual([...BACKLOG_KINDS]);
  const queued = backlog.find(({ kind }) => kind === 'message_queued');
  expect(queued?.count).toBeGreaterThan(0);
  expect(queued?.oldestSeconds).toBeGreaterThan(0);
});

test('counts failing endpoints, and held deliveries by reason', async () => {
  const arranged = await arrangeDeliveries(database, 6, {
    consecutive_failures: 10,
    failing_since: new Date(),
    holding_since: new Date(Date.now() - 60_000),
  });
  const before = await readBacklog(database);
  const reasons = [
    'endpoint_failing',
    'usage_limit',
    'suspension',
    'organization_deleted',
    'switched_off',
    null,
  ] as const;
  for (const [index, reason] of reasons.entries())
    await database.db
      .updateTable('webhook_deliveries')
      .set({ status: 'held', held_for: reason })
      .where('id', '=', arranged.deliveryIds[index] ?? '')
      .execute();
  const after = await readBacklog(database);
  const countOf = (backlog: typeof after, kind: string) =>
    backlog.find((row) => row.kind === kind)?.count ?? 0;
  for (const kind of [...reasons.filter((reason) => reason !== null), 'endpoint_disabled'])
    expect(countOf(after, `webhook_held_${kind}`) - countOf(before, `webhook_held_${kind}`)).toBe(1);
  const failing = after.find(({ kind }) => kind === 'webhook_endpoint_failing');
  expect(failing?.count).toBeGreaterThanOrEqual(1);
  expect(failing?.oldestSeconds).toBeGreaterThanOrEqual(60);
});

test('reads only indexes', async () => {
  await database.systemTransaction(async ({ db }) => {
    // With so few rows the planner would not use an index.
    await sql`set local enable_seqscan = off`.execute(db);
    const rows = await selectBacklog(db).explain<{ 'QUERY PLAN': string }>();
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    for (const index of [
      'outbox_dead_index',
      'webhook_deliveries_pending_index',
      'webhook_deliveries_held_index',
      'webhook_endpoints_holding_index',
      'messages_unsettled_index',
      'inbound_receipts_unprocessed_index',
      'notifications_unsent_index',
      'unclaimed_objects_due_at_index',
      'webhook_endpoints_disabled_index',
      'inboxes_reputation_paused_index',
      'messages_unparsed_index',
      'exports_failed_index',
    ])
      expect(plan).toContain(index);
    // Both contain only pending rows, or only failed ones; with so few, either may be cheaper.
    expect(plan).toMatch(/outbox_(due|turn)_index/);
    expect(plan).toMatch(/notifications_failed_(list_)?index/);
    // The last part counts any rows, in no order.
    expect(plan.match(/Seq Scan on \w+/g) ?? []).toEqual(
      plan.includes('Seq Scan on metric_deltas') ? ['Seq Scan on metric_deltas'] : [],
    );
  });
});

test('is read once for several scrapes, and a failure hides no other metric', async () => {
  let now = 0;
  let reads = 0;
  let isDown = false;
  const registry = new Registry();
  installBacklogMetrics(registry, {
    database: {
      db: typeConnection({
        async query() {
          reads += 1;
          if (isDown) throw new Error('no connection');
          return { command: 'SELECT', rows: [{ kind: 'outbox', count: 3, oldestSeconds: 7.5 }] };
        },
      } as unknown as Connection),
    },
    logger: pino({ level: 'silent' }),
    now: () => now,
  });
  const [first, second] = await Promise.all([registry.metrics(), registry.metrics()]);
  expect(reads).toBe(1);
  expect(first).toBe(second);
  expect(first).toContain('agent_email_backlog{kind="outbox"} 3');
  expect(first).toContain('agent_email_backlog_oldest_seconds{kind="outbox"} 7.5');
  expect(first).toContain('agent_email_backlog{kind="message_deferred"} 0');
  now += 10_000;
  isDown = true;
  // The first scrape may show the counter from before the failure.
  await registry.metrics();
  const failed = await registry.metrics();
  expect(failed).not.toContain('kind="outbox"');
  expect(failed).toContain('agent_email_backlog_failures_total 1');
  expect(reads).toBe(2);
});
