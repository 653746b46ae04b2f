import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { placeMessage } from '../../domain/messages/place-message.ts';
import { addToThread } from '../../domain/messages/thread-summary.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { usePostgres, useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

const IDS = 20_000;
const worker = useWorkerDatabase();
const owner = usePostgres('ownerUrl');

/** An inbox with many known ids, ten to a thread. */
const inbox = useResource(
  async () => {
    const created = await createInbox(worker, await createOrganization(worker));
    await owner.query(
      `insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
       select $1 || n, $2, $3, $4, '', '', now(), now(), now() from generate_series(0, ${IDS / 10 - 1}) n`,
      [`thr_${created.id}`, created.organizationId, created.environmentId, created.id],
    );
    await owner.query(
      `insert into thread_message_ids (inbox_id, id_hash, org_id, thread_id, source)
       select $3, encode(substr(sha256((n || '@x')::bytea), 1, 16), 'hex'), $2, $1 || n / 10, 'held'
       from generate_series(0, ${IDS - 1}) n`,
      [`thr_${created.id}`, created.organizationId, created.id],
    );
    await owner.query('vacuum analyze thread_message_ids, threads');
    return created;
  },
  ({ id }) => owner.query('delete from threads where inbox_id = $1', [id]),
);

async function rowsRead(db: Db): Promise<number> {
  const [row] = await query<{ read: number }>(
    { db },
    sql`select sum(seq_tup_read + idx_tup_fetch)::bigint as read from pg_stat_xact_user_tables
     where relname in ('thread_message_ids', 'threads')`,
  );
  return row?.read ?? Number.NaN;
}

test.each([
  ['that starts a conversation', null, [], 0],
  ['that answers a known one', '<19999@x>', ['<19990@x>', '<19995@x>', '<19999@x>'], 1],
  ['that names unknown ids', '<lost@x>', ['<lost1@x>', '<lost2@x>'], 0],
])(
  'placing a message %s reads only its own ids, in few statements',
  async (_what, inReplyTo, references, locks) => {
    const statements: string[] = [];
    await worker.systemTransaction(async (transaction) => {
      const { db } = transaction;
      const before = await rowsRead(db);
      const executor = transaction.db.getExecutor();
      const execute = executor.executeQuery.bind(executor);
      executor.executeQuery = (query) => {
        statements.push(query.sql);
        return execute(query);
      };
      const place = await placeMessage(transaction, recordingOutbox().outbox, {
        inbox,
        mail: { messageId: `<${newId('message')}@x>`, inReplyTo, references, subject: 'Re: Plan' },
        isTrusted: true,
        correspondents: null,
        at: new Date(),
      });
      executor.executeQuery = execute;
      expect((await rowsRead(db)) - before).toBeLessThanOrEqual(20);
      await addToThread(transaction.db, place, {
        message: {
          id: newId('message'),
          direction: 'inbound',
          preview: '',
          labels: [],
          hasAttachments: false,
        },
        correspondents: [],
        at: new Date(),
      });
    });
    // The first statement looks ids up and records them, whatever their number; an existing thread is locked by another.
    expect(statements.filter((query) => /thread_message_ids|"threads"/.test(query))).toHaveLength(1 + locks);
  },
);
