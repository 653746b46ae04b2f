import { expect, jest, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { createIdAt } from '../support/aged-mail.ts';
import { eventually } from '../support/eventually.ts';
import { useIsolatedOrganization } from '../support/isolated-organization.ts';

jest.setTimeout(300_000);
/** Temporal notices a dead worker after the heartbeat timeout of a minute. */
const TIMEOUT_MS = 250_000;

const own = useIsolatedOrganization();

const count = async (sql: string, values: unknown[] = [own.organizationId]) =>
  Number((await own.database.query(sql, values)).rows[0].count);
const countMessages = () => count('select count(*) from messages where org_id = $1');

test('a closed organization is purged when it is due, and another worker continues the purge of a killed one', async () => {
  const { body: inbox } = await own.call('POST', '/inboxes', {});
  const { rows } = await own.database.query('select env_id from inboxes where id = $1', [inbox.id]);
  const place = [own.organizationId, rows[0].env_id, inbox.id];
  const at = new Date();
  const threadId = createIdAt('thread', at);
  await own.database.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, message_count, last_message_at,
       created_at, updated_at) values ($4, $1, $2, $3, '', '', 10, now(), now(), now())`,
    [...place, threadId],
  );
  await own.database.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
       reply_to, subject, text_body, headers, created_at, updated_at, received_at)
     select id, $1, $2, $3, $4, 'inbound', 'received', 'a@people.example', '[]', '[]', '[]', '[]', 'Old', 'words', '{}',
       now(), now(), now() from unnest($5::text[]) id`,
    [...place, threadId, Array.from({ length: 10_000 }, () => createIdAt('message', at))],
  );
  const deletionId = newId('deletion');
  await own.database.query(`update organizations set deleted_at = now() - interval '31 days' where id = $1`, [
    own.organizationId,
  ]);
  // Its run is lost: the reconciler starts one.
  await own.database.query(
    `insert into deletions (id, kind, subject_id, deleted_by, deleted_at, due_at)
     values ($1, 'organization', $2, $3, now() - interval '31 days', now() - interval '1 day')`,
    [deletionId, own.organizationId, newId('user')],
  );
  expect((await own.call('GET', '/org')).body).toMatchObject({ code: 'organization_deleted' });
  await own.temporal.schedule.getHandle(RECONCILE_SCHEDULE_ID).trigger();
  await eventually(async () => expect(await countMessages()).toBeLessThan(10_000), TIMEOUT_MS);
  await own.service.kill('workers');
  expect(await countMessages()).toBeGreaterThan(0);
  const run = own.temporal.workflow.getHandle(`purge-organization/${own.organizationId}/${deletionId}`);
  expect((await run.describe()).searchAttributes).toMatchObject({ Stage: ['purging'] });

  await own.service.start('workers');
  await eventually(
    async () =>
      expect(
        await count(`select count(*) from deletions where id = $1 and status = 'purged'`, [deletionId]),
      ).toBe(1),
    TIMEOUT_MS,
  );
  expect(await countMessages()).toBe(0);
  expect(await count('select count(*) from organizations where id = $1')).toBe(0);
  await expect(run.result()).resolves.toMatch(/^purged: deleted \d+ row\(s\)$/);
});
