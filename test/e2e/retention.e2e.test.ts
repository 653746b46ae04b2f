import { expect, jest, test } from '@jest/globals';
import { START_RETENTION_SCHEDULE_ID } from '../../workflows/retention/start-retention.contract.ts';
import { createIdAt } from '../support/aged-mail.ts';
import { eventually } from '../support/eventually.ts';
import { useIsolatedOrganization } from '../support/isolated-organization.ts';

jest.setTimeout(300_000);
/** Temporal notices a dead worker after the heartbeat timeout of half a minute. */
const TIMEOUT_MS = 200_000;
const DAY_MS = 86_400_000;

const own = useIsolatedOrganization();

/** Creates messages a minute apart that end at `until`, ten per thread. */
async function fill(inbox: { id: string; env: string }, count: number, until: Date): Promise<void> {
  const times = Array.from({ length: count }, (_, n) => new Date(until.getTime() - (count - n) * 60_000));
  const threads = Array.from({ length: count / 10 }, () => createIdAt('thread', until));
  const place = [own.organizationId, inbox.env, inbox.id];
  await own.database.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, message_count, last_message_at,
       created_at, updated_at)
     select id, $1, $2, $3, '', '', 10, now(), now(), now() from unnest($4::text[]) id`,
    [...place, threads],
  );
  await own.database.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
       reply_to, subject, text_body, headers, created_at, updated_at, received_at)
     select id, $1, $2, $3, ($6::text[])[1 + (n - 1) / 10], 'inbound', 'received', 'a@people.example', '[]', '[]',
       '[]', '[]', 'Aged', 'words', '{}', at, at, at
     from unnest($4::text[], $5::timestamptz[]) with ordinality mail (id, at, n)`,
    [...place, times.map((at) => createIdAt('message', at)), times, threads],
  );
}

const countOf = async (table: 'messages' | 'threads') =>
  Number(
    (await own.database.query(`select count(*) from ${table} where org_id = $1`, [own.organizationId]))
      .rows[0].count,
  );

test('owners are notified of a new policy, and another worker continues the deletion of a killed one', async () => {
  const path = `/organizations/${own.organizationId}/retention-policy`;
  expect((await own.call('PUT', path, { retention_days: 30 })).body).toMatchObject({ pending: true });
  await eventually(async () => {
    const { rows } = await own.database.query(
      `select status from notifications where org_id = $1 and template = 'retention-notice'`,
      [own.organizationId],
    );
    expect(rows).toEqual([{ status: 'sent' }]);
  }, TIMEOUT_MS);

  const { body: inbox } = await own.call('POST', '/inboxes', {});
  const { rows } = await own.database.query('select env_id from inboxes where id = $1', [inbox.id]);
  const place = { id: inbox.id, env: rows[0].env_id as string };
  await fill(place, 10_000, new Date(Date.now() - 31 * DAY_MS));
  await fill(place, 20, new Date());
  // As if a week had passed.
  await own.database.query(
    `update retention_policies set applied_days = 30, applied_since = now(), steps = '[]' where org_id = $1`,
    [own.organizationId],
  );
  const workflowId = `retention/${own.organizationId}/${new Date().toISOString().slice(0, 10)}`;
  await own.temporal.schedule.getHandle(START_RETENTION_SCHEDULE_ID).trigger();
  await eventually(async () => expect(await countOf('messages')).toBeLessThan(10_020), TIMEOUT_MS);
  await own.service.kill('workers');
  const left = await countOf('messages');
  expect(left).toBeGreaterThan(20);
  await own.service.start('workers');
  await eventually(async () => expect(await countOf('messages')).toBe(20), TIMEOUT_MS);
  expect(await countOf('threads')).toBe(2);
  await expect(own.temporal.workflow.getHandle(workflowId).result()).resolves.toContain('deleted');
  const listed = (await own.call('GET', `/inboxes/${inbox.id}/messages?limit=100`)).body;
  expect(listed.data).toHaveLength(20);
});
