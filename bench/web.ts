import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import type pg from 'pg';
import { createSession } from '../domain/sessions/create-session.ts';
import { createDatabase } from '../platform/database/database.ts';
import { SCREENS } from '../web/shell/navigation.ts';
import { startServer, stopServer, withTemporal } from './api.ts';
import { type BenchDatabase, withBenchDatabase } from './bench-database.ts';
import { fillInbox, idsOf, withoutWordIndex } from './fill-messages.ts';
import { percentile } from './measure.ts';

const INBOX = { name: 'web', count: Number(process.env.BENCH_MESSAGES ?? 100_000) };
const WARM_UP = 20;
const RUNS = 100;
const OWNER = 'usr_bench';
const ENDPOINT = 'whe_bench';
const TARGET_MS = 150;
const FILES = ['/assets/console.js', '/assets/style.css'];

/**
 * `npm run bench -- web`: time until the first byte of each screen of the console, in an organization with BENCH_MESSAGES
 * (100,000) messages, and the sizes of what pages load.
 */
export function benchWeb(): Promise<void> {
  return withTemporal((temporalAddress) =>
    withBenchDatabase(async (database) => {
      await withoutWordIndex(database.owner, () => fillInbox(database.owner, INBOX));
      const token = await prepare(database);
      const paths = await listPaths(database.owner);
      const server = await startServer('../api/server.ts', database, temporalAddress);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        const visit = (path: string) => open({ agent, port: server.port, path, token });
        const table: Record<string, object> = {};
        for (const path of paths) table[path] = await measure(path, visit);
        console.table(table);
        for (const path of FILES) {
          const { body } = await visit(path);
          console.log(`${path}: ${gzipSync(body).length} bytes compressed`);
        }
      } finally {
        agent.destroy();
        await stopServer(server);
      }
    }),
  );
}

/** An owner with a session, a recipient and a count for each message that was sent. */
async function prepare({ owner, workerUrl }: BenchDatabase): Promise<string> {
  const { org } = idsOf(INBOX);
  await owner.query(
    `insert into users (id, email, name, email_verified_at, created_at, updated_at)
     values ('${OWNER}', 'owner@bench.test', 'Ada', now(), now(), now())`,
  );
  await owner.query(`insert into members (org_id, user_id, role) values ($1, '${OWNER}', 'owner')`, [org]);
  await owner.query(
    `insert into message_recipients (message_id, position, org_id, field, email, status, updated_at)
     select id, 0, org_id, 'to', 'person@example.com', 'sent', now() from messages where direction = 'outbound'`,
  );
  await fillDeliveries(owner);
  await owner.query('analyze');
  const database = createDatabase({ url: workerUrl, poolSize: 1 });
  try {
    const { token } = await database.systemTransaction(({ db }) =>
      createSession(db, {
        userId: OWNER,
        kind: 'full',
        method: 'password',
        factors: [],
        ip: '127.0.0.1',
        userAgent: 'bench',
      }),
    );
    return token;
  } finally {
    await database.close();
  }
}

/** An endpoint, with one delivery for each message; every fiftieth failed. */
async function fillDeliveries(owner: pg.Client): Promise<void> {
  const { org, env } = idsOf(INBOX);
  await owner.query(
    `insert into webhook_endpoints (id, org_id, env_id, url, events, secret, created_at, updated_at)
     values ('${ENDPOINT}', $1, $2, 'https://receiver.example/', '{message.received}', '', now(), now())`,
    [org, env],
  );
  await owner.query(
    `insert into events (id, org_id, env_id, inbox_id, about_id, type, data, created_at)
     select 'evt' || substr(id, 4), org_id, env_id, inbox_id, id, 'message.received', '{}', created_at from messages`,
  );
  await owner.query(
    `insert into webhook_deliveries (id, org_id, endpoint_id, event_id, status, attempts, last_status_code, created_at, completed_at)
     select 'whd' || substr(id, 4), org_id, '${ENDPOINT}', 'evt' || substr(id, 4),
       case when row_number() over () % 50 = 0 then 'exhausted' else 'delivered' end, 1, 200, created_at, created_at
     from messages`,
  );
}

async function listPaths(owner: pg.Client): Promise<string[]> {
  const { inbox } = idsOf(INBOX);
  const { rows } = await owner.query<{ id: string; threadId: string }>(
    `select id, thread_id as "threadId" from messages where direction = 'outbound' order by id desc limit 1`,
  );
  const [newest] = rows;
  return [
    ...SCREENS.map(({ path }) => path),
    '/overview?range=7d',
    `/inboxes/${inbox}`,
    `/inboxes/${inbox}?q=word10`,
    '/messages?q=sesquipedalian',
    '/messages?q=word1',
    '/messages?direction=outbound',
    `/webhooks/${ENDPOINT}`,
    `/webhooks/${ENDPOINT}?status=exhausted`,
    `/messages/${newest?.id}`,
    `/threads/${newest?.threadId}`,
  ];
}

interface Visit {
  firstByteMs: number;
  status: number;
  body: Buffer;
}

async function measure(path: string, visit: (path: string) => Promise<Visit>): Promise<object> {
  for (let run = 0; run < WARM_UP; run += 1) await visit(path);
  const visits: Visit[] = [];
  for (let run = 0; run < RUNS; run += 1) visits.push(await visit(path));
  const of = (share: number) =>
    Number(
      percentile(
        visits.map(({ firstByteMs }) => firstByteMs),
        share,
      ).toFixed(1),
    );
  const [first] = visits;
  return {
    status: first?.status,
    'p50 ms': of(0.5),
    'p95 ms': of(0.95),
    'aim ms': TARGET_MS,
    'HTML KB': Number(((first?.body.length ?? 0) / 1000).toFixed(1)),
  };
}

async function open({
  agent,
  port,
  path,
  token,
}: {
  agent: Agent;
  port: number;
  path: string;
  token: string;
}): Promise<Visit> {
  const startedAt = performance.now();
  const sent = request({ agent, host: 'localhost', port, path, headers: { cookie: `session=${token}` } });
  sent.end();
  const [response] = await once(sent, 'response');
  const firstByteMs = performance.now() - startedAt;
  const body = Buffer.concat(await response.toArray());
  return { firstByteMs, status: response.statusCode, body };
}
