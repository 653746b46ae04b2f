import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createMessageService } from '../../domain/messages/message.service.ts';
import type { MessageFilter } from '../../domain/messages/message-filter.ts';
import type { PageRequest } from '../../platform/pagination.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useApiDatabase, usePostgres, useWorkerDatabase } from '../support/resources.ts';
import { testScope } from '../support/test-scope.ts';
import { useResource } from '../support/use-resource.ts';

const MESSAGES = 12_000;
const NEIGHBOR_MESSAGES = 3_000;
const api = useApiDatabase();
const worker = useWorkerDatabase();
const owner = usePostgres('ownerUrl');
let organization: TestOrganization;
let inboxId: string;

/** One organization has most of the messages, and another has all of the newest. */
useResource(createInboxes, (inboxIds) =>
  owner.query('delete from messages where inbox_id = any($1)', [inboxIds]),
);

async function createInboxes(): Promise<string[]> {
  organization = await createOrganization(worker);
  const neighbor = await createOrganization(worker);
  inboxId = (await createInbox(worker, organization)).id;
  const neighborInboxId = (await createInbox(worker, neighbor)).id;
  await fill('msg_y', organization, inboxId, MESSAGES);
  await fill('msg_z', neighbor, neighborInboxId, NEIGHBOR_MESSAGES);
  await owner.query('vacuum analyze messages');
  return [inboxId, neighborInboxId];
}

async function fill(prefix: string, of: TestOrganization, inbox: string, count: number): Promise<void> {
  const ids = [of.organizationId, of.productionEnvironmentId, inbox, `thr_${inbox}`];
  await owner.query(
    `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
     values ($4, $1, $2, $3, '', '', now(), now(), now())`,
    ids,
  );
  await owner.query(
    `insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
       reply_to, subject, headers, created_at, updated_at)
     select '${prefix}' || right('${inbox}', 6) || lpad(n::text, 8, '0'), $1, $2, $3, $4, 'inbound', 'received',
       'a@example.com', '[]', '[]', '[]', '[]', '', '{}', now(), now() from generate_series(1, ${count}) n`,
    ids,
  );
}

/** Counts the rows of `messages` that a page reads, using the statistics of the transaction. */
async function measurePage(
  filter: MessageFilter,
  page: PageRequest,
): Promise<{ read: number; shown: number }> {
  const messages = createMessageService({ database: api });
  const scope = testScope(organization);
  return api.transaction(scope, async (transaction) => {
    const rowsRead = async () => {
      const [row] = await query<{ read: number }>(
        transaction,
        sql`select seq_tup_read + idx_tup_fetch as read from pg_stat_xact_user_tables where relname = 'messages'`,
      );
      return row?.read ?? Number.NaN;
    };
    // Earlier reads of this connection may be included.
    const before = await rowsRead();
    const { items } = await messages.list({ ...scope, transaction }, filter, page);
    return { read: (await rowsRead()) - before, shown: items.length };
  });
}

test.each(['an inbox', 'the environment'])(
  'a page of %s reads only what it returns, regardless of other data',
  async (of) => {
    const filter = of === 'an inbox' ? { inboxId } : {};
    const middle = `msg_y${inboxId.slice(-6)}${String(MESSAGES / 2).padStart(8, '0')}`;
    for (const order of ['desc', 'asc'] as const) {
      for (const after of [undefined, [middle]]) {
        const { read, shown } = await measurePage(filter, { limit: 25, order, ...(after ? { after } : {}) });
        expect(shown).toBe(25);
        expect(read).toBeGreaterThanOrEqual(shown);
        expect({ of, order, after, few: read <= 110 }).toEqual({ of, order, after, few: true });
      }
    }
  },
);
