import { expect, test } from '@jest/globals';
import { sql } from '@mikro-orm/core';
import pg from 'pg';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { BACKLOG_KINDS, readBacklog } from '../../domain/monitoring/backlog.ts';
import { installBacklogMetrics } from '../../workers/worker-metrics.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';
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
    consecutiveFailures: 10,
    failingSince: new Date(),
    holdingSince: new Date(Date.now() - 60_000),
  });
  const before = await readBacklog(database);
  const reasons = [
    'endpoint_failing',
    'usage_limit',
    'suspension',
    'organization_deleted',
    'switched_off',
    null,
  ];
  for (const [index, reason] of reasons.entries())
    await database.query(
      sql`update webhook_deliveries set status = 'held', held_for = ${reason}
        where id = ${arranged.deliveryIds[index] ?? ''}`,
    );
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
  let statement = '';
  await readBacklog({
    query: async (query) => {
      statement = query.sql;
      return [];
    },
  });
  const worker = new pg.Client({ connectionString: testStack().postgres.workerUrl });
  await worker.connect();
  try {
    // With so few rows the planner would not use an index.
    await worker.query('set enable_seqscan = off');
    const { rows } = await worker.query<{ 'QUERY PLAN': string }>(`explain ${statement}`);
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
      'inboxes_paused_index',
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
  } finally {
    await worker.end();
  }
});

test('is read once for several scrapes, and a failure hides no other metric', async () => {
  let now = 0;
  let reads = 0;
  let isDown = false;
  const registry = new Registry();
  installBacklogMetrics(registry, {
    database: {
      async query<Row>() {
        reads += 1;
        if (isDown) throw new Error('no connection');
        return [{ kind: 'outbox', count: 3, oldestSeconds: 7.5 }] as Row[];
      },
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
