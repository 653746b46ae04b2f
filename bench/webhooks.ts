import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import { createWebhookEvents } from '../domain/webhooks/webhook-events.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { createOutbox } from '../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { createTemporalClient } from '../platform/temporal.ts';
import { type IsolatedService, startIsolatedService, waitFor } from '../test/support/isolated-service.ts';
import { deliverWebhookWorkflowId } from '../workflows/webhooks/deliver-webhook.contract.ts';
import { startBareWorkflows } from './bare-workflows.ts';
import { percentile, runConcurrently } from './measure.ts';
import { createInbox, post } from './send.ts';
import { compareInTurns, type Runner } from './turns.ts';

const EVENTS = Number(process.env.BENCH_MESSAGES ?? 1000);
const DEAD_DELIVERIES = Number(process.env.BENCH_DEAD_DELIVERIES ?? 10_000);
const QUIET_EVENTS = 200;
/** Until the processes run compiled code: after a hundred deliveries, they still take longer. */
const WARM_UP = 1_000;
const CONCURRENCY = 20;
const TARGET = 0.8;
const FAIR_SECONDS = 60;
/** A delivery beside a backlog may take minutes, which is to be reported, not thrown. */
const MAX_LATENCY_MS = 900_000;
const TARGET_FAIR_MS = 1_000;
/** By the number of attempts. */
const TARGET_HISTORY_EVENTS = { 1: 6, 2: 12 };
const BARE_DELIVERY = { type: 'bareActivity', input: { deliveryId: 'whd' }, activities: 1 };

/**
 * `npm run bench -- webhooks`: latency from the commit of an event to its receiver; deliveries per second (baseline, in turns: bare
 * workflows of one activity on the same Temporal server); history events per delivery; and the effect of a dead endpoint
 * with BENCH_DEAD_DELIVERIES due deliveries on another one.
 */
export async function benchWebhooks(): Promise<void> {
  const stack = await startIsolatedService({});
  const source = await createSource(stack);
  try {
    await measureThroughput(stack, source);
    await measureHistory(stack, source);
    await measureFairness(stack, source);
  } finally {
    await source.close();
    await stack.stop();
  }
}

interface Source {
  /** Resolves when the event of the inbox is committed. */
  emit(inboxId: string): Promise<string>;
  /** Waits until Temporal has accepted every run. */
  drain(): Promise<void>;
  database: Database;
  close(): Promise<void>;
}

/** Records events with the service's own code, without messages. */
async function createSource(stack: IsolatedService): Promise<Source> {
  const { config } = stack;
  const database = createDatabase({ url: config.DATABASE_URL, poolSize: CONCURRENCY });
  const temporal = createTemporalClient(config);
  const outbox = createOutbox({
    database,
    workflows: createWorkflowGateway(temporal),
    logger: pino({ level: 'error' }),
  });
  const events = createWebhookEvents({ outbox });
  const inboxes = new Map<string, { organizationId: string; environmentId: string }>();
  const ownerOf = async (inboxId: string) => {
    const known = inboxes.get(inboxId);
    if (known) return known;
    const row = await database.db
      .selectFrom('inboxes')
      .select(['org_id as organizationId', 'env_id as environmentId'])
      .where('id', '=', inboxId)
      .executeTakeFirst();
    if (!row) throw new Error(`There is no inbox ${inboxId}`);
    inboxes.set(inboxId, row);
    return row;
  };
  return {
    database,
    async emit(inboxId) {
      const owner = await ownerOf(inboxId);
      const mark = randomUUID();
      await database.systemTransaction((transaction) =>
        events.record(transaction, {
          ...owner,
          inboxId,
          type: 'message.complained',
          data: {
            message_id: mark,
            inbox_id: inboxId,
            complained_recipients: ['ada@people.example'],
            feedback_type: 'abuse',
            complained_at: new Date().toISOString(),
          },
        }),
      );
      return mark;
    },
    async drain() {
      await outbox.drain();
      await waitFor('the outbox to be empty', async () => {
        await outbox.sweep(200);
        const left = await database.db.selectFrom('outbox').select('id').execute();
        if (left.length > 0) throw new Error(`${left.length} left`);
      });
    },
    async close() {
      await outbox.drain();
      await temporal.connection.close();
      await database.close();
    },
  };
}

interface Receiver {
  url: string;
  /** Time of each event's first arrival, by its marker. */
  arrivals: Map<string, number>;
  server: Server;
}

async function startReceiver(answer: (times: number) => number | null): Promise<Receiver> {
  const arrivals = new Map<string, number>();
  const times = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as { data: { message_id: string } };
    const mark = body.data.message_id;
    if (!arrivals.has(mark)) arrivals.set(mark, performance.now());
    const time = (times.get(mark) ?? 0) + 1;
    times.set(mark, time);
    const status = answer(time);
    if (status !== null) response.writeHead(status).end();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, arrivals, server };
}

function stopReceiver({ server }: Receiver): void {
  server.close();
  server.closeAllConnections();
}

/** Creates an inbox whose events go only to the receiver. */
async function subscribe(stack: IsolatedService, receiver: Receiver): Promise<string> {
  const inboxId = await createInbox(stack);
  await post(stack, '/webhooks/endpoints', {
    url: receiver.url,
    events: ['message.complained'],
    inbox_ids: [inboxId],
  });
  return inboxId;
}

async function emitMany(source: Source, inboxId: string, receiver: Receiver, count: number): Promise<void> {
  const goal = receiver.arrivals.size + count;
  await runConcurrently(count, CONCURRENCY, async () => {
    await source.emit(inboxId);
  });
  await waitFor('the events to arrive', async () => {
    if (receiver.arrivals.size < goal) throw new Error(`${receiver.arrivals.size} of ${goal}`);
  });
}

/** @returns milliseconds from commit to receiver, of events emitted one by one. */
async function latencyOf(source: Source, inboxId: string, receiver: Receiver): Promise<number> {
  const mark = await source.emit(inboxId);
  const committedAt = performance.now();
  return waitFor(
    'an event to arrive',
    async () => {
      const arrivedAt = receiver.arrivals.get(mark);
      if (arrivedAt === undefined) throw new Error('not yet');
      return Math.max(0, arrivedAt - committedAt);
    },
    MAX_LATENCY_MS,
  );
}

async function measureThroughput(stack: IsolatedService, source: Source): Promise<void> {
  const receiver = await startReceiver(() => 200);
  const inboxId = await subscribe(stack, receiver);
  await emitMany(source, inboxId, receiver, WARM_UP);
  const quiet: number[] = [];
  for (let index = 0; index < QUIET_EVENTS; index += 1)
    quiet.push(await latencyOf(source, inboxId, receiver));
  printLatencies('one by one', quiet);
  const bare = await startBareWorkflows(stack.config.TEMPORAL_ADDRESS);
  const runners: Runner[] = [
    {
      name: 'deliveries',
      async run(count) {
        await emitMany(source, inboxId, receiver, count);
        await source.drain();
      },
    },
    {
      name: 'bare workflow, one activity',
      run: (count) => bare.run(BARE_DELIVERY, count),
      aim: TARGET,
    },
  ];
  for (const { run } of runners) await run(WARM_UP);
  await compareInTurns(EVENTS, runners);
  await bare.stop();
  stopReceiver(receiver);
}

/** History events of a delivery that succeeds immediately, and of one that needs a second attempt. */
async function measureHistory(stack: IsolatedService, source: Source): Promise<void> {
  const client = await stack.connectToTemporal();
  for (const attempts of [1, 2] as const) {
    const receiver = await startReceiver((time) => (time < attempts ? 500 : 200));
    const inboxId = await subscribe(stack, receiver);
    const mark = await source.emit(inboxId);
    const row = await source.database.db
      .selectFrom('webhook_deliveries as delivery')
      .innerJoin('events as event', 'event.id', 'delivery.event_id')
      .select('delivery.id')
      .where('event.inbox_id', '=', inboxId)
      .where(sql`event.data->>'message_id'`, '=', mark)
      .executeTakeFirst();
    await waitFor('the run', async () => {
      await client.workflow.getHandle(deliverWebhookWorkflowId(row?.id ?? '', 1)).result();
    });
    const { events } = await client.workflow
      .getHandle(deliverWebhookWorkflowId(row?.id ?? '', 1))
      .fetchHistory();
    console.log(
      `history events of a delivery with ${attempts} attempt(s): ${events?.length} (aim ≤ ${TARGET_HISTORY_EVENTS[attempts]})`,
    );
    stopReceiver(receiver);
  }
  await client.connection.close();
}

/**
 * An endpoint that never responds gets DEAD_DELIVERIES deliveries while no worker runs, so that all are due when
 * the workers start; then another endpoint gets four events a second.
 */
async function measureFairness(stack: IsolatedService, source: Source): Promise<void> {
  const [dead, healthy] = [await startReceiver(() => null), await startReceiver(() => 200)];
  const [deadInbox, healthyInbox] = [await subscribe(stack, dead), await subscribe(stack, healthy)];
  printLatencies('before', await emitSteadily(source, healthyInbox, healthy, 10));
  await stack.kill('workers');
  await runConcurrently(DEAD_DELIVERIES, CONCURRENCY, async () => {
    await source.emit(deadInbox);
  });
  await source.drain();
  console.log(`${DEAD_DELIVERIES} deliveries are due at an endpoint that hangs; starting the workers`);
  await stack.start('workers');
  const meanwhile = await emitSteadily(source, healthyInbox, healthy, FAIR_SECONDS);
  printLatencies('next to the dead endpoint', meanwhile);
  const tens = Array.from({ length: FAIR_SECONDS / 10 }, (_, ten) =>
    meanwhile.slice(40 * ten, 40 * (ten + 1)),
  );
  console.log(
    `p95 of each ten seconds: ${tens.map((some) => Math.round(percentile(some, 0.95))).join(', ')} ms`,
  );
  const p95 = percentile(meanwhile, 0.95);
  const quick = p95 <= TARGET_FAIR_MS ? 'met' : 'MISSED';
  console.log(`p95 next to the dead endpoint: ${Math.round(p95)} ms (target ≤ ${TARGET_FAIR_MS}: ${quick})`);
  console.log(`requests to the dead endpoint meanwhile: ${dead.arrivals.size}`);
  stopReceiver(dead);
  stopReceiver(healthy);
}

/** Emits four events a second without waiting for their arrival. */
async function emitSteadily(
  source: Source,
  inboxId: string,
  receiver: Receiver,
  seconds: number,
): Promise<number[]> {
  const latencies: Promise<number>[] = [];
  for (let index = 0; index < 4 * seconds; index += 1) {
    latencies.push(latencyOf(source, inboxId, receiver));
    await pause(250);
  }
  return Promise.all(latencies);
}

function printLatencies(name: string, latencies: number[]): void {
  const at = (share: number) => Math.round(percentile(latencies, share));
  console.log(
    `commit to receiver, ${name}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms (${latencies.length} events)`,
  );
}
