import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { readGateInput } from '../../domain/outbound/check-send.ts';
import { createDatabase } from '../../platform/database/database.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabaseUrls } from '../support/isolated-database.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';

const { ownerUrl, workerUrl } = await createDatabaseUrls('alarm_plan');
const owner = new pg.Client({ connectionString: ownerUrl });
await owner.connect();
afterAll(() => owner.end());

const TARGET = { recipients: ['new@people.example'], threadId: null };

async function insertSent(from: number, to: number): Promise<void> {
  await owner.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc, reply_to,
       subject, headers)
     select 'msg_' || lpad(n::text, 8, '0'), org_id, env_id, inbox_id, id, 'outbound', 'sent', 'a@b.example', '[]', '[]', '[]',
       '[]', '', '{}' from threads, generate_series($1::int, $2::int) n`,
    [from, to],
  );
  await owner.query(
    `insert into message_recipients (message_id, position, org_id, field, email)
     select id, 0, org_id, 'to', 'known@people.example' from messages where id >= 'msg_' || lpad($1::text, 8, '0')`,
    [from],
  );
}

/** Rows of recipients that PostgreSQL has read. A connection reports its reads when it ends. */
async function countReads(): Promise<number> {
  const { rows } = await owner.query(
    `select seq_tup_read + coalesce(idx_tup_fetch, 0) as reads from pg_stat_user_tables where relname = 'message_recipients'`,
  );
  return Number(rows[0].reads);
}

test('with an alarm in force, the gate reads each recipient once, although the tables have grown since its plans were made', async () => {
  const worker = createDatabase({ url: workerUrl, poolSize: 1 });
  const inbox = await createInbox(worker, await createOrganization(worker));
  await owner.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at)
     select 'thr_1', org_id, env_id, id, '', '', now() from inboxes`,
  );
  await owner.query(
    `insert into injection_alarms (message_id, org_id, env_id, inbox_id, thread_id, ends_at, addresses)
     select 'msg_1', org_id, env_id, id, 'thr_2', now() + interval '1 day', '{}' from inboxes`,
  );
  await insertSent(1, 2);
  for (const table of ['messages', 'message_recipients']) {
    await owner.query(`alter table ${table} set (autovacuum_enabled = false)`);
    await owner.query(`vacuum analyze ${table}`);
  }
  // PostgreSQL makes the plan that it keeps in the sixth run of a connection.
  for (let run = 0; run < 6; run += 1)
    expect((await readGateInput(worker.db, inbox.id, TARGET)).policies.demandingAlarm).toBe('msg_1');
  await insertSent(3, 8_000);
  const before = await countReads();
  expect((await readGateInput(worker.db, inbox.id, TARGET)).policies.demandingAlarm).toBe('msg_1');
  await worker.close();
  const reads = await eventually(async () => {
    const sum = (await countReads()) - before;
    expect(sum).toBeGreaterThan(5_000);
    return sum;
  });
  expect(reads).toBeLessThan(50_000);
});
