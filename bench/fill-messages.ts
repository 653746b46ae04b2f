import type pg from 'pg';
import type { Scope } from '../domain/identity/scope.ts';

const BATCH = 50_000;

/** An organization with one inbox of `count` messages. */
export interface FilledInbox {
  name: string;
  count: number;
}

/** Ids derived from the inbox's name. */
export function idsOf({ name }: Pick<FilledInbox, 'name'>) {
  return { org: `org_${name}`, env: `env_${name}`, inbox: `inb_${name}` };
}

/** A scope with access to the inbox. */
export function scopeOf({ name }: Pick<FilledInbox, 'name'>): Scope {
  const { org, env } = idsOf({ name });
  return {
    organizationId: org,
    environmentId: env,
    environmentBound: true,
    permissions: new Set(['messages:read', 'threads:read', 'metrics:read'] as const),
    actor: { kind: 'system', id: 'bench' },
    requestId: 'bench',
  };
}

/** An organization with an environment and an inbox, without mail. */
export async function createBenchInbox(owner: pg.Client, name: string): Promise<void> {
  const { org, env, inbox } = idsOf({ name });
  await owner.query(
    `insert into organizations (id, name, slug, created_at, updated_at) values ('${org}', '${name}', '${name}', now(), now());
     insert into environments (id, org_id, name, slug, kind, created_at, updated_at)
       values ('${env}', '${org}', 'production', 'production', 'production', now(), now());
     insert into inboxes (id, org_id, env_id, email, username, domain, created_at, updated_at)
       values ('${inbox}', '${org}', '${env}', '${name}@bench.test', '${name}', 'bench.test', now(), now())`,
  );
}

/** SQL for TypeIDs created at `time`: its milliseconds as ten letters, then sixteen derived from the row number. */
const idAt = (prefix: string, name: string, time: string) =>
  `'${prefix}_' || (select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
       ((floor(extract(epoch from ${time}) * 1000)::bigint >> (45 - 5 * place)) & 31)::int + 1, 1), '' order by place)
     from generate_series(0, 9) place) || left(md5('${name}' || n), 16)`;

const PER_THREAD = 10;

/** Messages per inbox with the rare word, with the rare label and with the rare sender: more than a page each. */
const RARE = 30;

/** Drops the full-text index, runs `work` and rebuilds the index: updating it row by row would take longest of all. */
export async function withoutWordIndex(owner: pg.Client, work: () => Promise<void>): Promise<void> {
  const { rows } = await owner.query<{ indexdef: string }>(
    `select indexdef from pg_indexes where indexname = 'message_search_document_index'`,
  );
  await owner.query('drop index message_search_document_index');
  await work();
  await owner.query(`set maintenance_work_mem = '256MB'`);
  await owner.query(rows[0]?.indexdef ?? '');
}

/**
 * Fills the inbox of a separate organization: 30 words per message out of 20,000, some far more frequent than others, one
 * message a minute up to now, every third one sent, ten in a thread. The word
 * `sesquipedalian`, the label `rare` and the sender `rare@example.com` have {@link RARE} each, however large the inbox.
 */
export async function fillInbox(owner: pg.Client, inbox: FilledInbox): Promise<void> {
  const { name, count } = inbox;
  const ids = idsOf(inbox);
  const startedAt = performance.now();
  await createBenchInbox(owner, name);
  const threads = Math.ceil(count / PER_THREAD);
  const every = Math.max(1, Math.floor(count / RARE));
  await owner.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, message_count, last_message_at, created_at, updated_at)
     select 'thr_${name}' || lpad(n::text, 8, '0'), '${ids.org}', '${ids.env}', '${ids.inbox}', 'Subject', 'subject', ${PER_THREAD},
       now() - (${threads} - n) * interval '${PER_THREAD} minutes', now(), now()
     from generate_series(1, ${threads}) n`,
  );
  for (let from = 1; from <= count; from += BATCH) {
    const to = Math.min(count, from + BATCH - 1);
    await owner.query(
      `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, text_body, preview, labels, headers, created_at, updated_at, sent_at, received_at)
       select ${idAt('msg', name, 'at')}, '${ids.org}', '${ids.env}', '${ids.inbox}',
         'thr_${name}' || lpad(((n - 1) / ${PER_THREAD} + 1)::text, 8, '0'),
         case when n % 3 = 0 then 'outbound' else 'inbound' end, case when n % 3 = 0 then 'sent' else 'received' end,
         case when n % ${every} = 1 then 'rare' else 'sender' || n % 5000 end || '@example.com',
         '[{"email":"agent@bench.test"}]', '[]', '[]', '[]', 'Subject word' || n % 1000,
         (select string_agg('word' || (20000 * random() ^ 3)::int, ' ') from generate_series(1, 30) where n > 0)
           || case when n % ${every} = 2 then ' sesquipedalian' else '' end,
         'preview', case when n % ${every} = 3 then '{rare}'::text[] else '{}' end, '{}', at, at,
         case when n % 3 = 0 then at end, case when n % 3 > 0 then at end
       from (select n, now() - (${count} - n) * interval '1 minute' as at from generate_series(${from}, ${to}) n) numbers`,
    );
  }
  console.log(`${count} messages in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}
