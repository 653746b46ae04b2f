import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createMessageService } from '../../domain/messages/message.service.ts';
import type { MessageFilter } from '../../domain/messages/message-filter.ts';
import type { Database } from '../../platform/database/database.ts';
import type { PageRequest } from '../../platform/pagination.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { testStack } from '../support/stack.ts';
import { connect } from '../support/test-app.ts';

const MANY = 12_000;
const NEWER = 3_000;
let api: Database;
let owner: pg.Client;
let organization: TestOrganization;
let inboxId: string;
let neighborInboxId: string;

/** One who has most of the messages, and a neighbor who has all of the newest. */
beforeAll(async () => {
  const { postgres } = testStack();
  const worker = await connect(postgres.workerUrl);
  organization = await createOrganization(worker);
  const neighbor = await createOrganization(worker);
  [inboxId, neighborInboxId] = [
    (await createInbox(worker, organization)).id,
    (await createInbox(worker, neighbor)).id,
  ];
  await worker.close();
  owner = new pg.Client({ connectionString: postgres.ownerUrl });
  await owner.connect();
  await fill('msg_y', organization, inboxId, MANY);
  await fill('msg_z', neighbor, neighborInboxId, NEWER);
  await owner.query('vacuum analyze messages');
  api = await connect(postgres.apiUrl);
});
afterAll(async () => {
  await owner.query('delete from messages where inbox_id = any($1)', [[inboxId, neighborInboxId]]);
  await Promise.all([api?.close(), owner.end()]);
});

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

/** Rows of `messages` that a page reads by an index, as the transaction's own statistics tell. */
async function rowsReadFor(
  filter: MessageFilter,
  page: PageRequest,
): Promise<{ read: number; shown: number }> {
  const messages = createMessageService({ database: api });
  const scope = {
    organizationId: organization.organizationId,
    environmentId: organization.productionEnvironmentId,
    environmentBound: true,
    permissions: new Set(['messages:read'] as const),
    actor: { kind: 'system' as const, id: 'test' },
    requestId: 'req_test',
  };
  return api.transaction(scope, async (transaction) => {
    const rowsRead = async () => {
      const [row] = await transaction.em.execute<{ read: string }[]>(
        `select seq_tup_read + idx_tup_fetch as read from pg_stat_xact_user_tables where relname = 'messages'`,
      );
      return Number(row?.read);
    };
    // What the connection read before may not have been handed in yet.
    const before = await rowsRead();
    const { items } = await messages.list({ ...scope, transaction }, filter, page);
    return { read: (await rowsRead()) - before, shown: items.length };
  });
}

test.each(['an inbox', 'the environment'])(
  'a page of %s reads what it shows, whatever others have',
  async (of) => {
    const filter = of === 'an inbox' ? { inboxId } : {};
    const middle = `msg_y${inboxId.slice(-6)}${String(MANY / 2).padStart(8, '0')}`;
    for (const order of ['desc', 'asc'] as const) {
      for (const after of [undefined, [middle]]) {
        const { read, shown } = await rowsReadFor(filter, { limit: 25, order, ...(after ? { after } : {}) });
        expect(shown).toBe(25);
        expect({ of, order, after, few: read <= 60 }).toEqual({ of, order, after, few: true });
      }
    }
  },
);
