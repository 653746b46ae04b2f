import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { listDeadCommands, retryDeadCommands } from '../../platform/outbox/dead-commands.ts';
import { OutboxEntity } from '../../platform/outbox/outbox.entity.ts';
import { createOutbox } from '../../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import { createServiceMetrics } from '../../platform/service-metrics.ts';
import { createMetricsRegistry } from '../../platform/telemetry.ts';
import { withSpan } from '../../platform/tracing/span.ts';
import { startTracing, type Tracing } from '../../platform/tracing/tracing.ts';
import { eventually } from '../support/eventually.ts';
import { createIsolatedDatabase } from '../support/isolated-database.ts';
import { TraceCollector } from '../support/trace-collector.ts';

const ORGANIZATION = 'org_outbox';
const collector = new TraceCollector();
let database: Database;
let tracing: Tracing | undefined;
beforeAll(async () => {
  tracing = startTracing(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: await collector.start(),
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: 1,
    },
    { process: 'test', logger: pino({ level: 'silent' }) },
  );
  database = await createIsolatedDatabase('outbox_failures');
});
afterAll(async () => {
  await tracing?.stop();
  await Promise.all([database?.close(), collector.stop()]);
});
beforeEach(() => database.db.deleteFrom('outbox').execute());

const START = {
  workflowType: 'aWorkflow',
  workflowId: 'a/1',
  taskQueue: 'a',
  priority: { priorityKey: 3, fairnessKey: ORGANIZATION },
  input: {},
  searchAttributes: {},
  summary: 'a',
};

/** A gateway to a Temporal that is away until the test changes that. */
function arrange() {
  const started: { memo?: Record<string, string> }[] = [];
  const state = { isAway: true };
  const workflow = {
    async start(_type: string, options: { memo?: Record<string, string> }) {
      if (state.isAway) throw new Error('Failed to start Workflow', { cause: new Error('14 UNAVAILABLE') });
      started.push(options);
    },
  };
  const lines: Record<string, unknown>[] = [];
  const metrics = createServiceMetrics();
  const outbox = createOutbox({
    database,
    workflows: createWorkflowGateway({ workflow } as unknown as Parameters<typeof createWorkflowGateway>[0]),
    logger: pino({}, { write: (line) => void lines.push(JSON.parse(line)) }),
    metrics,
  });
  const enqueue = () =>
    database.transaction({ organizationId: ORGANIZATION, requestId: 'req_1' }, async (transaction) =>
      outbox.enqueue(transaction, ORGANIZATION, { start: START }),
    );
  const rows = () => database.db.selectFrom('outbox').select(columnsOf(OutboxEntity)).execute();
  const makeDue = () =>
    database.db
      .updateTable('outbox')
      .set({ available_at: new Date(0) })
      .execute();
  return { state, started, lines, metrics, outbox, enqueue, rows, makeDue };
}

test('a command that Temporal does not accept shows its attempts and the error, and its log line the ids', async () => {
  const { outbox, enqueue, rows, makeDue, lines, metrics } = arrange();
  await enqueue();
  await outbox.drain();
  const lastError = 'Failed to start Workflow: 14 UNAVAILABLE';
  expect(await rows()).toMatchObject([{ attempts: 1, lastError }]);
  expect(lines).toMatchObject([{ organizationId: ORGANIZATION, workflowId: 'a/1', requestId: 'req_1' }]);
  await makeDue();
  await outbox.sweep(10);
  expect(await rows()).toMatchObject([{ attempts: 2, lastError }]);
  const registry = createMetricsRegistry('test');
  metrics.register(registry);
  expect(await registry.metrics()).toMatch(/agent_email_temporal_call_seconds_count\{outcome="failed"\} 2/);
  registry.clear();
});

test('a dead command is retried by the command for operators', async () => {
  const { state, started, outbox, enqueue, rows, makeDue } = arrange();
  await enqueue();
  await outbox.drain();
  await database.db.updateTable('outbox').set({ attempts: 199 }).execute();
  await makeDue();
  await outbox.sweep(10);
  const [dead] = await listDeadCommands(database.db);
  expect(dead).toMatchObject({ workflowId: 'a/1', attempts: 200, lastError: expect.stringContaining('14') });
  await makeDue();
  state.isAway = false;
  expect(await outbox.sweep(10)).toBe(0);
  expect(await retryDeadCommands(database.db, '0')).toHaveLength(0);
  expect(await retryDeadCommands(database.db, dead?.id)).toHaveLength(1);
  expect(await outbox.sweep(10)).toBe(1);
  expect(started).toHaveLength(1);
  expect([await rows(), await listDeadCommands(database.db)]).toEqual([[], []]);
});

test('a retried command is due at once', async () => {
  const { outbox, enqueue } = arrange();
  await enqueue();
  await outbox.drain();
  // The column keeps milliseconds: a time that is rounded up would not be due yet in some of the rounds.
  for (let round = 0; round < 50; round += 1) {
    await database.db.updateTable('outbox').set({ dead_at: new Date() }).execute();
    const [{ isDue } = { isDue: false }] = await database.transaction(
      { organizationId: ORGANIZATION },
      async ({ db }) => {
        await retryDeadCommands(db);
        return db.selectFrom('outbox').select(sql<boolean>`available_at <= now()`.as('isDue')).execute();
      },
    );
    expect(isDue).toBe(true);
  }
});

test('the trace of a request continues in the workflow that a sweep starts later', async () => {
  const { state, started, outbox, enqueue, makeDue } = arrange();
  let traceId = '';
  await withSpan({ name: 'POST /things', kind: 'server', parent: 'root' }, async (span) => {
    ({ traceId } = span.spanContext());
    await enqueue();
  });
  await outbox.drain();
  state.isAway = false;
  await makeDue();
  // Outside any request, as in the reconciler.
  expect(await outbox.sweep(10)).toBe(1);
  const [{ memo } = {}] = started;
  expect(memo).toEqual({ traceparent: expect.stringMatching(`^00-${traceId}-`) });
  await tracing?.stop();
  await eventually(() => {
    const own = collector.spans.filter((span) => span.traceId === traceId);
    const starts = own.filter(({ name }) => name === 'StartWorkflow aWorkflow');
    const root = own.find(({ name }) => name === 'POST /things');
    // The first one failed.
    expect(starts).toHaveLength(2);
    for (const { parentSpanId } of starts) expect(parentSpanId).toBe(root?.spanId);
    expect(memo?.traceparent).toContain(starts[1]?.spanId);
    expect(starts[0]?.attributes).toMatchObject({ 'error.type': 'Error' });
  });
  expect(collector.spans.map(({ service }) => service)).toContain('agent-email-test');
});
