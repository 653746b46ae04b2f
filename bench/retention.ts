import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { entities } from '../domain/entities.ts';
import { createExpiredMailService } from '../domain/retention/expired-mail.service.ts';
import { createDatabase } from '../platform/database/database.ts';
import { type IdKind, idFromBytes } from '../platform/ids.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import { type OwnService, patiently, startOwnService } from '../test/support/own-service.ts';
import { START_RETENTION_SCHEDULE_ID } from '../workflows/retention/start-retention.contract.ts';
import { percentile, printFigures } from './measure.ts';
import { createInbox, sendMany } from './send.ts';
import { startSmtpSink } from './smtp-sink.ts';

const OLD_MESSAGES = Number(process.env.BENCH_RETENTION_MESSAGES ?? 150_000);
const SENDS = Number(process.env.BENCH_MESSAGES ?? 1_000);
const WARM_UP = 100;
const FILL_BATCH = 10_000;
const A_THREAD = 5;
const DAY_MS = 86_400_000;
/** Share of the sends without a deletion. */
const AIM = 0.8;

/**
 * `npm run bench -- retention`: sends a second while BENCH_RETENTION_MESSAGES (150,000) old messages are being deleted,
 * beside sends before and after that on the same tables; then what a batch costs at the beginning and at the end.
 */
export async function benchRetention(): Promise<void> {
  const sink = await startSmtpSink();
  const stack = await startOwnService({ SMTP_RELAY_PORT: String(sink.port) });
  const owner = new pg.Client({ connectionString: stack.ownerDatabaseUrl });
  await owner.connect();
  try {
    const { rows } = await owner.query('select id from organizations');
    const organizationId = rows[0].id as string;
    const inboxId = await createInbox(stack);
    await fill(owner, inboxId);
    const rate = async () => SENDS / (await sendMany(stack, inboxId, SENDS));
    await sendMany(stack, inboxId, WARM_UP);
    const before = await rate();
    await startDeletion(stack, owner, organizationId);
    const countedAt = performance.now();
    const counted = await countOld(owner);
    const during = await rate();
    const deleted = counted - (await countOld(owner));
    const seconds = (performance.now() - countedAt) / 1000;
    await stopDeletion(stack, organizationId);
    const after = await rate();
    printFigures([
      { name: 'sends while deleting', ours: during, floor: (before + after) / 2, unit: '1/s', aim: AIM },
    ]);
    console.log(`sends before ${before.toFixed(1)}/s, after ${after.toFixed(1)}/s`);
    console.log(`deleted meanwhile: ${Math.round(deleted / seconds)} messages/s`);
    await timeBatches(stack, owner, organizationId);
  } finally {
    await owner.end();
    await stack.stop();
    await sink.stop();
  }
}

/** Conversations of five, over 60 days until 40 days ago. */
async function fill(owner: pg.Client, inboxId: string): Promise<void> {
  const startedAt = performance.now();
  const { rows } = await owner.query('select org_id, env_id from inboxes where id = $1', [inboxId]);
  const place = [rows[0].org_id, rows[0].env_id, inboxId];
  const first = Date.now() - 100 * DAY_MS;
  for (let from = 0; from < OLD_MESSAGES; from += FILL_BATCH) {
    const count = Math.min(FILL_BATCH, OLD_MESSAGES - from);
    const times = Array.from(
      { length: count },
      (_, n) => new Date(first + ((from + n) / OLD_MESSAGES) * 60 * DAY_MS),
    );
    const threads = times.filter((_, n) => n % A_THREAD === 0).map((at) => idAt('thread', at));
    await owner.query(
      `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, message_count, last_message_at,
         created_at, updated_at)
       select id, $1, $2, $3, '', '', ${A_THREAD}, now(), now(), now() from unnest($4::text[]) id`,
      [...place, threads],
    );
    await owner.query(
      `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, text_body, preview, raw_key, headers, created_at, updated_at, received_at)
       select id, $1, $2, $3, ($6::text[])[1 + (n - 1) / ${A_THREAD}], 'inbound', 'received',
         'sender' || n % 5000 || '@example.com', '[{"email":"agent@bench.test"}]', '[]', '[]', '[]',
         'Subject word' || n % 1000,
         (select string_agg('word' || (20000 * random() ^ 3)::int, ' ') from generate_series(1, 30) where n > 0),
         'preview', 'raw/bench/' || id, '{}', at, at, at
       from unnest($4::text[], $5::timestamptz[]) with ordinality mail (id, at, n)`,
      [...place, times.map((at) => idAt('message', at)), times, threads],
    );
  }
  await owner.query('analyze');
  console.log(`${OLD_MESSAGES} old messages in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}

function idAt(kind: IdKind, at: Date): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(at.getTime(), 0, 6);
  return idFromBytes(kind, bytes);
}

async function countOld(owner: pg.Client): Promise<number> {
  const { rows } = await owner.query(
    `select count(*)::int as count from messages where created_at < now() - interval '30 days'`,
  );
  return rows[0].count;
}

async function startDeletion(stack: OwnService, owner: pg.Client, organizationId: string): Promise<void> {
  await applyPolicy(owner, organizationId);
  const connection = await Connection.connect({ address: stack.temporalAddress });
  await new Client({ connection }).schedule.getHandle(START_RETENTION_SCHEDULE_ID).trigger();
  await connection.close();
  const all = await countOld(owner);
  await patiently('the deletion to begin', async () => {
    if ((await countOld(owner)) === all) throw new Error('not yet');
  });
}

/** As it is a week after somebody set it. */
async function applyPolicy(owner: pg.Client, organizationId: string): Promise<void> {
  await owner.query(
    `insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
     values ($1, 30, 30, now(), '[]', now(), now())
     on conflict (org_id) do update set postponed_until = null`,
    [organizationId],
  );
}

async function stopDeletion({ baseUrl, apiKey }: OwnService, organizationId: string): Promise<void> {
  const response = await fetch(`${baseUrl}/organizations/${organizationId}/retention-policy/postpone`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ days: 1 }),
  });
  if (!response.ok) throw new Error(`postpone answered ${response.status}: ${await response.text()}`);
}

/** Deletes the rest without pauses, in this process. */
async function timeBatches(stack: OwnService, owner: pg.Client, organizationId: string): Promise<void> {
  await applyPolicy(owner, organizationId);
  const database = await createDatabase({ url: stack.ownerDatabaseUrl, poolSize: 2, entities });
  const outbox: Outbox = { enqueue: () => undefined, sweep: async () => 0, drain: async () => undefined };
  const { deleteExpired } = createExpiredMailService({ database, outbox, pause: async () => undefined });
  const durations: number[] = [];
  let beganAt = performance.now();
  const stretch = await deleteExpired(organizationId, {
    from: { messages: 0, threads: 0, place: null },
    limitMs: 3_600_000,
    aborted: () => false,
    progressed: () => {
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
