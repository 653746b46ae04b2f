import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { PURGE_INBOX, purgeInboxWorkflowId } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Inbox } from './inbox.entity.ts';

export interface PurgeCounts {
  messages: number;
  threads: number;
}

export interface PurgeService {
  /**
   * Removes the mail of an inbox that was deleted with `purge`: messages with what hangs on them, threads, drafts and
   * receipts, a batch a transaction. Their bytes go with the next sweeps.
   *
   * @param progressed called after each batch.
   * @throws AppError `unavailable` while the relay has a message of it; the rest is gone then.
   */
  purge(inboxId: string, progressed: (soFar: PurgeCounts) => void): Promise<PurgeCounts>;
}

const BATCH_SIZE = 500;
/** What nobody could tell the outcome of any more, if its message were gone. */
const AWAITING_RELAY = `status in ('sending', 'deferred', 'queued')`;

export function createPurgeService({ database }: { database: Database }): PurgeService {
  return {
    async purge(inboxId, progressed) {
      const soFar: PurgeCounts = { messages: 0, threads: 0 };
      const deleteAll = async (counter: keyof PurgeCounts | null, sql: string) => {
        for (let removed = BATCH_SIZE; removed === BATCH_SIZE; ) {
          removed = await database.systemTransaction(({ em }) => deleteBatch(em, inboxId, sql));
          if (counter) soFar[counter] += removed;
          progressed(soFar);
        }
      };
      if (!(await isPurgeRequested(database, inboxId))) return soFar;
      await deleteAll('messages', DELETE_MESSAGES);
      await deleteAll(null, DELETE_DRAFTS);
      await deleteAll(null, DELETE_RECEIPTS);
      await deleteAll('threads', DELETE_THREADS);
      await markPurged(database, inboxId);
      return soFar;
    },
  };
}

const DELETE_MESSAGES = `with gone as (delete from messages where id in (
    select id from messages where inbox_id = ? and not (${AWAITING_RELAY}) limit ${BATCH_SIZE}) returning id)
  select count(*)::int as count from gone`;
const DELETE_DRAFTS = `with gone as (delete from drafts where id in (
    select id from drafts where inbox_id = ? limit ${BATCH_SIZE}) returning id)
  select count(*)::int as count from gone`;
// Those of reports and of doubles have bytes no message names.
const DELETE_RECEIPTS = `with gone as (delete from inbound_receipts where id in (
    select id from inbound_receipts where inbox_id = ? limit ${BATCH_SIZE}) returning raw_key, org_id),
  discarded as (insert into unclaimed_objects (storage_key, org_id, due_at)
    select distinct raw_key, org_id, now() from gone
    on conflict (storage_key) do update set due_at = excluded.due_at)
  select count(*)::int as count from gone`;
const DELETE_THREADS = `with gone as (delete from threads where id in (
    select id from threads t where inbox_id = ? and not exists (select from messages m where m.thread_id = t.id)
    limit ${BATCH_SIZE}) returning id)
  select count(*)::int as count from gone`;

async function deleteBatch(em: EntityManager, inboxId: string, sql: string): Promise<number> {
  const [row] = await em.execute<{ count: number }[]>(sql, [inboxId]);
  return row?.count ?? 0;
}

async function isPurgeRequested(database: Database, inboxId: string): Promise<boolean> {
  const rows = await database.statement<{ id: string }>(
    'select id from inboxes where id = ? and purge_requested_at is not null',
    [inboxId],
  );
  return rows.length > 0;
}

async function markPurged(database: Database, inboxId: string): Promise<void> {
  const [left] = await database.statement<{ count: number }>(
    'select count(*)::int as count from messages where inbox_id = ?',
    [inboxId],
  );
  if (left?.count)
    throw new AppError('unavailable', {
      detail: `${left.count} message(s) are with the relay.`,
      fix: 'Nothing: it is tried again until they are settled.',
    });
  await database.statement('update inboxes set purged_at = now() where id = ?', [inboxId]);
}

/** The start of a purge; also what the reconciler uses for one that has lost its run. */
export function buildPurgeStart(inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>) {
  return {
    workflowType: PURGE_INBOX,
    workflowId: purgeInboxWorkflowId(inbox.id),
    taskQueue: MAINTENANCE_QUEUE,
    input: { inboxId: inbox.id },
    searchAttributes: {
      OrgId: inbox.organizationId,
      EnvId: inbox.environmentId,
      InboxId: inbox.id,
      ResourceId: inbox.id,
      Stage: 'purging',
    },
    summary: `Purge ${inbox.id}`,
  };
}

/** Purges that have lost their run. */
export function overduePurges(database: Database): OverdueSource {
  return {
    name: 'purges',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildPurgeStart>[0]>(database, {
        table: 'inboxes',
        overdue: `purge_requested_at < now() - interval '2 minutes' and purged_at is null`,
        columns: 'id, org_id as "organizationId", env_id as "environmentId"',
        limit,
      });
      return rows.map((row) => ({ start: buildPurgeStart(row), whenStopped: 'restart' as const }));
    },
  };
}
