import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { findFreePort } from '../dev/stack/ports.ts';
import { startTemporal } from '../dev/stack/temporal.ts';
import { findTemporalCli } from '../dev/stack/temporal-binaries.ts';
import { createApiKeyToken, hashApiKeyToken } from '../domain/api-keys/api-key-token.ts';
import { eventually } from '../test/support/eventually.ts';
import { testEnvironment } from '../test/support/test-app.ts';
import { type BenchDatabase, withBenchDatabase } from './bench-database.ts';
import { fillInbox, idsOf } from './fill-messages.ts';
import { percentile, runConcurrently } from './measure.ts';

const INBOX = { name: 'api', count: 2_000 };
/** With fewer, much of what is measured is V8 compiling. */
const REQUESTS = Number(process.env.BENCH_MESSAGES ?? 10_000);
/** Sends take longer: they also load Temporal and PostgreSQL. */
const SHARE_OF_SENDS = 1 / 4;
/** The only call to measure, by its name in the table; by default all. */
const CALL = process.env.BENCH_CALL;
const ROUNDS = 5;
/** Of a round, in which the two servers take turns: what else runs on the host slows both of them. */
const SLICES = 10;
/** Of each call, until V8 has compiled what they share. */
const WARM_UP = 1_000;
const LANES = 4;
const READ_TARGET = 0.7;
const WRITE_TARGET = 0.6;
/** Of processor time, for a send with the start of its workflow. */
const SEND_TARGET_MS = 5;
/** Until the work that follows a response has ended: a started workflow, a deleted row of the outbox. */
const SETTLE_MS = 1_000;

interface Server {
  port: number;
  child: ChildProcess;
}

interface Call {
  name: string;
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  body?: object;
  aim: string;
  /** Whether work follows the response. */
  settles?: boolean;
}

interface Reading {
  cpuMs: number;
  durations: number[];
}

/**
 * `npm run bench -- api`: processor time of the API process per request, which does not depend on how busy the machine is,
 * next to bare Fastify and pg with the same statements on the same database (`bare-api.ts`). The two take turns.
 */
export function benchApi(): Promise<void> {
  return withTemporal((temporalAddress) =>
    withBenchDatabase((database) => benchCalls(database, temporalAddress)),
  );
}

/** Sends start workflows, which no worker runs. */
export async function withTemporal(work: (address: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-bench-'));
  const cacheDir = resolve(import.meta.dirname, '../.cache/temporal');
  const temporal = await startTemporal({
    executable: await findTemporalCli({ cacheDir, environment: process.env, log: () => undefined }),
    port: await findFreePort(),
    logFile: join(folder, 'temporal.log'),
  });
  try {
    await work(temporal.address);
  } finally {
    await temporal.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchCalls(database: BenchDatabase, temporalAddress: string): Promise<void> {
  await fillInbox(database.owner, INBOX);
  const token = await prepare(database.owner);
  const calls = (await describeCalls(database.owner)).filter(({ name }) => [name, undefined].includes(CALL));
  const ours = await startServer('../api/server.ts', database, temporalAddress);
  const floor = await startServer('bare-api.ts', database, temporalAddress);
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  try {
    for (const server of [ours, floor])
      for (const call of calls) await measure(server, call, { agent, token, count: WARM_UP });
    const table: Record<string, object> = {};
    for (const call of calls) table[call.name] = await compare(call, { ours, floor }, { agent, token });
    console.table(table);
  } finally {
    agent.destroy();
    await Promise.all([stopServer(ours), stopServer(floor)]);
  }
}

async function prepare(owner: pg.Client): Promise<string> {
  const { org } = idsOf(INBOX);
  const token = createApiKeyToken('live');
  const permissions = ['messages:read', 'threads:read', 'drafts:read', 'drafts:write', 'messages:send'];
  await owner.query(
    `insert into api_keys (id, org_id, name, token_hash, last_four, permissions, created_at)
     values ('key_bench', $1, 'bench', $2, '0000', $3, now())`,
    [org, hashApiKeyToken(token), permissions],
  );
  await owner.query(
    `insert into message_recipients (message_id, position, org_id, field, email, status, updated_at)
     select id, 0, org_id, 'to', 'person@example.com', 'sent', now() from messages where direction = 'outbound'`,
  );
  await owner.query(
    `insert into drafts (id, org_id, env_id, inbox_id, "to", cc, bcc, reply_to, headers, created_at, updated_at)
     select 'drf_bench', org_id, env_id, id, '[]', '[]', '[]', '[]', '{}', now(), now() from inboxes`,
  );
  await owner.query('analyze');
  return token;
}

async function describeCalls(owner: pg.Client): Promise<Call[]> {
  const { inbox } = idsOf(INBOX);
  const { rows } = await owner.query<{ id: string; threadId: string }>(
    `select id, thread_id as "threadId" from messages where direction = 'outbound' order by id desc limit 1`,
  );
  const { id, threadId } = rows[0] as { id: string; threadId: string };
  const body = {
    to: [{ email: 'person@example.com' }],
    subject: 'A draft',
    text_body: 'Hello from the bench. '.repeat(10),
  };
  const reads = {
    'one message': `/messages/${id}`,
    '25 messages': `/inboxes/${inbox}/messages?limit=25`,
    '25 threads': `/inboxes/${inbox}/threads?limit=25`,
    'one thread of 10': `/threads/${threadId}`,
  };
  return [
    ...Object.entries(reads).map(([name, path]) => ({
      name,
      method: 'GET' as const,
      path,
      aim: `ratio ${READ_TARGET}`,
    })),
    {
      name: 'create a draft',
      method: 'POST',
      path: `/inboxes/${inbox}/drafts`,
      body,
      aim: `ratio ${WRITE_TARGET}`,
    },
    {
      name: 'change a draft',
      method: 'PATCH',
      path: '/drafts/drf_bench',
      body: { subject: 'Changed' },
      aim: `ratio ${WRITE_TARGET}`,
    },
    {
      name: 'send a message',
      method: 'POST',
      path: `/inboxes/${inbox}/messages`,
      body,
      aim: `${SEND_TARGET_MS} ms`,
      settles: true,
    },
  ];
}

async function compare(
  call: Call,
  { ours, floor }: { ours: Server; floor: Server },
  client: { agent: Agent; token: string },
): Promise<object> {
  const readings = { ours: [] as Reading[], floor: [] as Reading[] };
  // Work that follows a response is waited for, so it is measured in one slice.
  const slices = call.settles ? 1 : SLICES;
  const requests = call.settles ? REQUESTS * SHARE_OF_SENDS : REQUESTS;
  const count = Math.ceil(requests / ROUNDS / slices);
  // The first round is not counted: V8 compiles again what the call before has specialized.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const slicesOf = { ours: [] as Reading[], floor: [] as Reading[] };
    for (let slice = 0; slice < slices; slice += 1) {
      slicesOf.ours.push(await measure(ours, call, { ...client, count }));
      slicesOf.floor.push(await measure(floor, call, { ...client, count }));
    }
    if (round === 0) continue;
    readings.ours.push(meanOf(slicesOf.ours));
    readings.floor.push(meanOf(slicesOf.floor));
  }
  const cpu = (of: Reading[], share = 0.5) =>
    percentile(
      of.map(({ cpuMs }) => cpuMs),
      share,
    );
  const latency = (of: Reading[], share: number) =>
    percentile(
      of.flatMap(({ durations }) => durations),
      share,
    );
  const two = (value: number) => Number(value.toFixed(2));
  return {
    'CPU ms': two(cpu(readings.ours)),
    spread: `${two(cpu(readings.ours, 0))}–${two(cpu(readings.ours, 1))}`,
    'floor ms': two(cpu(readings.floor)),
    'floor spread': `${two(cpu(readings.floor, 0))}–${two(cpu(readings.floor, 1))}`,
    ratio: two(cpu(readings.floor) / cpu(readings.ours)),
    aim: call.aim,
    'p50 ms': two(latency(readings.ours, 0.5)),
    'floor p50': two(latency(readings.floor, 0.5)),
    'p99 ms': two(latency(readings.ours, 0.99)),
    'floor p99': two(latency(readings.floor, 0.99)),
  };
}

const meanOf = (slices: readonly Reading[]): Reading => ({
  cpuMs: slices.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / slices.length,
  durations: slices.flatMap(({ durations }) => durations),
});

async function measure(
  { port, child }: Server,
  call: Call,
  { agent, token, count }: { agent: Agent; token: string; count: number },
): Promise<Reading> {
  const before = cpuMsOf(child.pid as number);
  const durations = await runConcurrently(count, LANES, () => send(call, { agent, token, port }));
  if (call.settles) await sleep(SETTLE_MS);
  return { cpuMs: (cpuMsOf(child.pid as number) - before) / count, durations };
}

/** Processor time that all threads of a process have used, to the nanosecond. Linux only. */
function cpuMsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

async function send(
  { method, path, body }: Call,
  { agent, token, port }: { agent: Agent; token: string; port: number },
): Promise<void> {
  const payload = body && JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    ...(payload ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) } : {}),
  };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  request({ agent, host: '127.0.0.1', port, method, path: `/api/v1${path}`, headers }, (response) => {
    const { statusCode = 0 } = response;
    response.resume().once('end', () => {
      if (statusCode < 300) resolve();
      else reject(new Error(`${method} ${path} returned ${statusCode}`));
    });
  })
    .once('error', reject)
    .end(payload);
  return promise;
}

export async function startServer(
  script: string,
  { apiUrl, workerUrl }: BenchDatabase,
  temporalAddress: string,
): Promise<Server> {
  const port = await findFreePort();
  const child = spawn(process.execPath, [...SERVER_OPTIONS, join(import.meta.dirname, script)], {
    env: {
      PATH: process.env.PATH,
      ...testEnvironment(apiUrl, {
        WORKER_DATABASE_URL: workerUrl,
        API_PORT: String(port),
        LOG_LEVEL: 'info',
        MAIL_DOMAIN: 'bench.test',
        TEMPORAL_ADDRESS: temporalAddress,
      }),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const server = { port, child };
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`${script} exited`);
    await fetch(`http://127.0.0.1:${port}/`);
  }, 60_000);
  return server;
}

/** For profiles: BENCH_NODE_OPTIONS="--cpu-prof --cpu-prof-dir=/tmp/profiles". */
const SERVER_OPTIONS = process.env.BENCH_NODE_OPTIONS?.split(' ') ?? [];

export async function stopServer({ child }: Server): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}
