import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { findFreePort } from '../dev/stack/ports.ts';
import { startPostgres } from '../dev/stack/postgres.ts';
import { entities } from '../domain/entities.ts';
import type { Scope } from '../domain/identity/scope.ts';
import { createMessageService, type MessageFilter } from '../domain/messages/message.service.ts';
import { createEventService } from '../domain/webhooks/event.service.ts';
import { createDatabase } from '../platform/database/database.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { PageRequest } from '../platform/pagination.ts';
import { migrate } from '../workers/migrate.ts';
import { percentile } from './measure.ts';

const MESSAGES = Number(process.env.BENCH_SEARCH_MESSAGES ?? 1_000_000);
const BATCH = 50_000;
const RUNS = 50;

/**
 * `npm run bench -- search`: pages of lists and searches as the API asks for them, in an inbox of 10,000 messages and in
 * one of BENCH_SEARCH_MESSAGES (1,000,000) of the same database. 30 words a message out of 20,000, some far more
 * frequent than others.
 */
export async function benchSearch(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-bench-'));
  chmodSync(folder, 0o755);
  const postgres = await startPostgres({
    dataDir: join(folder, 'postgres'),
    port: await findFreePort(),
    password: 'bench',
    logFile: join(folder, 'postgres.log'),
    durable: false,
    log: () => undefined,
  });
  try {
    await postgres.ensureDatabase('agent_email');
    const url = (user: string) => postgres.url('agent_email', { user, password: 'bench' });
    const [migrationUrl, apiUrl] = [postgres.url('agent_email'), url('api_login')];
    await migrate({ migrationUrl, apiUrl, workerUrl: url('worker_login') });
    const owner = new pg.Client({ connectionString: migrationUrl });
    await owner.connect();
    const inboxes = [
      { name: 'small', count: Math.min(10_000, MESSAGES) },
      { name: 'large', count: MESSAGES },
    ];
    for (const inbox of inboxes) await fill(owner, inbox);
    await owner.query('analyze');
    await owner.end();
    await measure(apiUrl, inboxes);
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(owner: pg.Client, { name, count }: { name: string; count: number }): Promise<void> {
  const ids = { org: `org_${name}`, env: `env_${name}`, inbox: `inb_${name}`, thread: `thr_${name}` };
  const startedAt = performance.now();
  await owner.query(
    `insert into organizations (id, name, slug, created_at, updated_at) values ('${ids.org}', '${name}', '${name}', now(), now());
     insert into environments (id, org_id, name, kind, created_at, updated_at)
       values ('${ids.env}', '${ids.org}', 'production', 'production', now(), now());
     insert into inboxes (id, org_id, env_id, email, username, domain, created_at, updated_at)
       values ('${ids.inbox}', '${ids.org}', '${ids.env}', '${name}@bench.test', '${name}', 'bench.test', now(), now());
     insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
       values ('${ids.thread}', '${ids.org}', '${ids.env}', '${ids.inbox}', '', '', now(), now(), now())`,
  );
  for (let from = 1; from <= count; from += BATCH) {
    const to = Math.min(count, from + BATCH - 1);
    await owner.query(
      `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, text_body, preview, labels, headers, created_at, updated_at)
       select 'msg_${name}' || lpad(n::text, 8, '0'), '${ids.org}', '${ids.env}', '${ids.inbox}', '${ids.thread}',
         case when n % 3 = 0 then 'outbound' else 'inbound' end, 'received', 'sender' || n % 5000 || '@example.com',
         '[{"email":"agent@bench.test"}]', '[]', '[]', '[]', 'Subject word' || n % 1000,
         (select string_agg('word' || (20000 * random() ^ 3)::int, ' ') from generate_series(1, 30) where n > 0)
           || case when n % 9973 = 0 then ' sesquipedalian' else '' end,
         'preview', case when n % 5000 = 0 then '{rare}'::text[] else '{}' end, '{}', now() - (${count} - n) * interval '1 minute', now()
       from generate_series(${from}, ${to}) n`,
    );
  }
  console.log(`${count} messages in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}

/** Name, filter, and which page is asked for. */
const QUESTIONS: [string, MessageFilter, number][] = [
  ['list, first page', {}, 1],
  ['list, page 100', {}, 100],
  ['a rare word (1 in 10,000)', { q: 'sesquipedalian' }, 1],
  ['a word in one of 600', { q: 'word10000' }, 1],
  ['a word in every second', { q: 'word1' }, 1],
  ['the same, page 20', { q: 'word1' }, 20],
  ['two words and a subject', { q: 'word10 word200 subject:word7' }, 1],
  ['from: and a word', { q: 'from:sender42 word1' }, 1],
  ['a rare label', { label: 'rare' }, 1],
  ['a sender', { from: 'sender42@example.com' }, 1],
  ['no match', { q: 'nowhere' }, 1],
];

async function measure(apiUrl: string, inboxes: { name: string; count: number }[]): Promise<void> {
  const database = await createDatabase({ url: apiUrl, poolSize: 2, entities });
  const outbox: Outbox = { enqueue: () => undefined, sweep: async () => 0, drain: async () => undefined };
  const messages = createMessageService({ database, outbox, events: createEventService({ outbox }) });
  const rows: Record<string, Record<string, number>> = {};
  for (const { name, count } of inboxes) {
    const scope: Scope = {
      organizationId: `org_${name}`,
      environmentId: `env_${name}`,
      environmentBound: true,
      permissions: new Set(['messages:read'] as const),
      actor: { kind: 'system', id: 'bench' },
      requestId: 'bench',
    };
    for (const [question, filter, pages] of QUESTIONS) {
      const asked = { ...filter, inboxId: `inb_${name}` };
      let page: PageRequest = { limit: 25, order: 'desc' };
      for (let turned = 1; turned < pages; turned += 1) {
        const { next } = await messages.list(scope, asked, page);
        if (next) page = { ...page, after: next };
      }
      const durations: number[] = [];
      for (let run = 0; run < RUNS; run += 1) {
        const startedAt = performance.now();
        await messages.list(scope, asked, page);
        durations.push(performance.now() - startedAt);
      }
      rows[question] = {
        ...rows[question],
        [`p50 ms of ${count}`]: Number(percentile(durations, 0.5).toFixed(1)),
        [`p99 ms of ${count}`]: Number(percentile(durations, 0.99).toFixed(1)),
      };
    }
  }
  console.table(rows);
  await database.close();
}
