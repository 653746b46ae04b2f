import pg from 'pg';
import { createExpiredMailService } from '../domain/retention/expired-mail.service.ts';
import { createWebhookEvents } from '../domain/webhooks/webhook-events.ts';
import { createDatabase } from '../platform/database/database.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import { type IsolatedService, startIsolatedService, waitFor } from '../test/support/isolated-service.ts';
import {
  APPLY_RETENTION,
  applyRetentionWorkflowId,
} from '../workflows/retention/apply-retention.contract.ts';
import { MAINTENANCE_QUEUE } from '../workflows/task-queues.contract.ts';
import { fillInbox, idsOf } from './fill-messages.ts';
import { percentile, printFigures } from './measure.ts';
import { createInbox, sendMany } from './send.ts';
import { startSmtpSink } from './smtp-sink.ts';

/** One message a minute: with a policy of one day, all but the last day's are expired. */
const FILLED = { name: 'aged', count: Number(process.env.BENCH_RETENTION_MESSAGES ?? 150_000) };
const ROUNDS = 5;
const MESSAGES_PER_ROUND = Math.ceil(Number(process.env.BENCH_MESSAGES ?? 1_000) / ROUNDS);
const WARM_UP = 100;
/** Minimum ratio to sends without a deletion. */
const TARGET = 0.8;

/**
 * `npm run bench -- retention`: measures sends per second while another organization's BENCH_RETENTION_MESSAGES (150,000)
 * messages are deleted, alternating with sends on the same tables without a deletion; then the cost of the first and the
 * last batches.
 */
export async function benchRetention(): Promise<void> {
  const sink = await startSmtpSink();
  const stack = await startIsolatedService({ SMTP_RELAY_PORT: String(sink.port) });
  const owner = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await owner.connect();
  try {
    const inboxId = await createInbox(stack);
    await fill(owner);
    await sendMany(stack, inboxId, WARM_UP);
    const spent = { without: 0, with: 0 };
    const before = await countLeft(owner);
    // Alternating, so that other load on the machine affects both.
    for (let round = 1; round <= ROUNDS; round += 1) {
      spent.without += await sendMany(stack, inboxId, MESSAGES_PER_ROUND);
      await startDeletion(stack, owner, round);
      spent.with += await sendMany(stack, inboxId, MESSAGES_PER_ROUND);
      await stopDeletion(owner);
    }
    const deleted = before - (await countLeft(owner));
    const sends = ROUNDS * MESSAGES_PER_ROUND;
    printFigures([
      {
        name: 'sends while deleting',
        unit: '1/s',
        target: TARGET,
        measured: sends / spent.with,
        baseline: sends / spent.without,
      },
    ]);
    console.log(`deleted meanwhile: about ${Math.round(deleted / spent.with)} messages/s`);
    await timeBatches(stack, owner);
  } finally {
    await owner.end();
    await stack.stop();
    await sink.stop();
  }
}

/** Each message has a raw object, so that the sweep of storage has work too. */
async function fill(owner: pg.Client): Promise<void> {
  await fillInbox(owner, FILLED);
  await owner.query(`update messages set raw_key = 'raw/bench/' || id where inbox_id = $1`, [
    idsOf(FILLED).inbox,
  ]);
  await owner.query('vacuum analyze');
}

async function countLeft(owner: pg.Client): Promise<number> {
  const { rows } = await owner.query('select count(*)::int as count from messages where org_id = $1', [
    idsOf(FILLED).org,
  ]);
  return rows[0].count;
}

async function startDeletion(stack: IsolatedService, owner: pg.Client, round: number): Promise<void> {
  await applyPolicy(owner);
  const temporal = await stack.connectToTemporal();
  const organizationId = idsOf(FILLED).org;
  await temporal.workflow.start(APPLY_RETENTION, {
    workflowId: applyRetentionWorkflowId(organizationId, `bench-${round}`),
    taskQueue: MAINTENANCE_QUEUE,
    args: [{ organizationId }],
  });
  await temporal.connection.close();
  const all = await countLeft(owner);
  await waitFor('the deletion to begin', async () => {
    if ((await countLeft(owner)) === all) throw new Error('not yet');
  });
}

/** Sets the policy as if a week ago. */
async function applyPolicy(owner: pg.Client): Promise<void> {
  await owner.query(
    `insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
     values ($1, 1, 1, now(), '[]', now(), now())
     on conflict (org_id) do update set postponed_until = null`,
    [idsOf(FILLED).org],
  );
}

/** The run ends after its current batch. */
async function stopDeletion(owner: pg.Client): Promise<void> {
  await owner.query(
    `update retention_policies set postponed_until = now() + interval '1 day' where org_id = $1`,
    [idsOf(FILLED).org],
  );
}

/** Deletes the remaining messages in this process, without pauses. */
async function timeBatches(stack: IsolatedService, owner: pg.Client): Promise<void> {
  await applyPolicy(owner);
  const database = createDatabase({ url: stack.ownerDatabaseUrl, poolSize: 2 });
  const outbox: Outbox = { enqueue: () => undefined, sweep: async () => 0, drain: async () => undefined };
  const { deleteExpired } = createExpiredMailService({
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
    pause: async () => undefined,
  });
  const durations: number[] = [];
  let beganAt = performance.now();
  const stretch = await deleteExpired(idsOf(FILLED).org, {
    from: { messages: 0, threads: 0, cursor: null },
    limitMs: 3_600_000,
    isAborted: () => false,
    onProgress: () => {
      durations.push(performance.now() - beganAt);
      beganAt = performance.now();
    },
  });
  await database.close();
  const tenth = Math.max(1, Math.floor(durations.length / 10));
  const median = (values: number[]) => percentile(values, 0.5).toFixed(1);
  console.log(
    `${stretch?.messages} messages in ${durations.length} batches: median of the first tenth ${median(durations.slice(0, tenth))} ms, of the last ${median(durations.slice(-tenth))} ms`,
  );
}
