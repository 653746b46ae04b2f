import { expect, test } from '@jest/globals';
import { parseSearchQuery } from '../../domain/messages/search-query.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { usePostgres, useWorkerDatabase } from '../support/resources.ts';
import { useResource } from '../support/use-resource.ts';

const MESSAGES = 20_000;
const worker = useWorkerDatabase();
const owner = usePostgres('ownerUrl');
const plans: string[] = [];
const inbox = useResource(createFullInbox, async ({ id }) => {
  // Otherwise `auto_explain` explains each statement that the triggers run for each deleted row.
  await owner.query('set auto_explain.log_min_duration = -1');
  await owner.query('delete from messages where inbox_id = $1', [id]);
});

async function createFullInbox() {
  const inbox = await createInbox(worker, await createOrganization(worker));
  owner.on('notice', ({ message }) => plans.push(message ?? ''));
  const { id: inboxId, organizationId: org, environmentId: env } = inbox;
  await owner.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
     values ($1, $2, $3, $4, '', '', now(), now(), now())`,
    [`thr_${inboxId}`, org, env, inboxId],
  );
  await owner.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
       reply_to, subject, text_body, headers, created_at, updated_at)
     select 'msg_plan' || lpad(n::text, 8, '0'), $1, $2, $3, $4, 'inbound', 'received', 'a@example.com', '[]', '[]',
       '[]', '[]', 'ordinary', case when n % 1000 = 0 then 'sesquipedalian' else 'words' end, '{}', now(), now()
     from generate_series(1, ${MESSAGES}) n`,
    [org, env, inboxId, `thr_${inboxId}`],
  );
  // Otherwise the plan would depend on how many entries other test files have added to the GIN pending list.
  await owner.query(`select gin_clean_pending_list('message_search_document_index')`);
  await owner.query(`load 'auto_explain'`);
  await owner.query(`set auto_explain.log_min_duration = 0`);
  await owner.query(`set auto_explain.log_nested_statements = on`);
  await owner.query(`set client_min_messages = log`);
  // A small table does not need an index. If a policy prevented the use of an index, this setting would not help.
  await owner.query('set enable_seqscan = off');
  await owner.query(`select set_config('app.org_id', $1, false)`, [org]);
  return inbox;
}

/** Returns the plan of the statement inside the SQL function, with the policies that apply there. */
async function explainSearch(
  words: string,
  { status = null }: { status?: string | null } = {},
): Promise<{ plan: string; rows: number }> {
  // Analyzes both tables together: plans differ while autovacuum has analyzed only one of them.
  await owner.query('analyze message_search, messages');
  plans.length = 0;
  const { rows } = await owner.query(
    `select * from search_messages($1, $2, $3, $4, $5, $6, null, null, null, null, null, false, 100)`,
    [inbox.organizationId, inbox.environmentId, inbox.id, `'${inbox.id}' & !'l:spam'`, words, status],
  );
  return { plan: plans.filter((text) => text.includes('message_search')).join('\n'), rows: rows.length };
}

test('finds a rare word in the full-text index', async () => {
  const { plan, rows } = await explainSearch(`'sesquipedalian'`);
  expect(rows).toBe(MESSAGES / 1000);
  expect(plan).toContain('Bitmap Index Scan on message_search_document_index');
  expect(plan).not.toContain('Seq Scan on message_search');
});

test('finds a code in all its spellings, and alternatives of rare words, in the full-text index', async () => {
  for (const words of [
    parseSearchQuery('482 913').words,
    parseSearchQuery('sesquipedalian OR xylophone').words,
  ]) {
    const { plan } = await explainSearch(words);
    expect(plan).toContain('Bitmap Index Scan on message_search_document_index');
    expect(plan).not.toContain('Seq Scan on message_search');
  }
});

test('finds a frequent word by scanning the inbox in order', async () => {
  const { plan, rows } = await explainSearch(`'ordinary'`);
  expect(rows).toBe(100);
  expect(plan).toMatch(/Index Scan Backward using message_search_pkey[\s\S]*?Index Cond: \(inbox_id = /);
  expect(plan).not.toContain('Sort');
});

test('does not read messages without a filter on them', async () => {
  const { plan } = await explainSearch(`'sesquipedalian'`);
  expect(plan).toContain('message_search');
  expect(plan).not.toMatch(/ on messages|messages_pkey/);
});

test('reads each match by primary key with a filter on messages, never the messages of all tenants', async () => {
  for (const words of [`'sesquipedalian'`, `'ordinary'`]) {
    const { plan, rows } = await explainSearch(words, { status: 'received' });
    expect(rows).toBeGreaterThan(0);
    expect(plan).toMatch(
      /Index Scan using messages_pkey on \w*\.?messages m\b[\s\S]*Index Cond: \(\w*\.?id = s\.message_id\)/,
    );
    expect(plan).not.toMatch(/Seq Scan on \w*\.?messages|Hash Join|Merge Join/);
  }
});
