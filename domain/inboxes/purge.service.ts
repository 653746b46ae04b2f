import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { PURGE_INBOX, purgeInboxWorkflowId } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Inbox } from './inbox.entity.ts';

export interface Purged {
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
  purge(inboxId: string, progressed: (soFar: Purged) => void): Promise<Purged>;
}

const BATCH = 500;
/** What nobody could tell the outcome of any more, if its message were gone. */
const WITH_THE_RELAY = `status in ('sending', 'deferred', 'queued')`;

export function createPurgeService({ database }: { database: Database }): PurgeService {
  return {
    async purge(inboxId, progressed) {
      const soFar: Purged = { messages: 0, threads: 0 };
      const repeat = async (counter: keyof Purged | null, sql: string) => {
        for (let removed = BATCH; removed === BATCH; ) {
          removed = await database.systemTransaction(({ em }) => removeSome(em, inboxId, sql));
          if (counter) soFar[counter] += removed;
          progressed(soFar);
        }
      };
      if (!(await isToBePurged(database, inboxId))) return soFar;
      await repeat('messages', MESSAGES);
      await repeat(null, DRAFTS);
      await repeat(null, RECEIPTS);
      await repeat('threads', THREADS);
      await finish(database, inboxId);
      return soFar;
    },
  };
}

const MESSAGES = `with gone as (delete from messages where id in (
    select id from messages where inbox_id = ? and not (${WITH_THE_RELAY}) limit ${BATCH}) returning id)
  select count(*)::int as count from gone`;
const DRAFTS = `with gone as (delete from drafts where id in (
    select id from drafts where inbox_id = ? limit ${BATCH}) returning id)
  select count(*)::int as count from gone`;
// Those of reports and of doubles have bytes no message names.
const RECEIPTS = `with gone as (delete from inbound_receipts where id in (
    select id from inbound_receipts where inbox_id = ? limit ${BATCH}) returning raw_key, org_id),
  discarded as (insert into discarded_objects (storage_key, org_id, due_at)
    select distinct raw_key, org_id, now() from gone
    on conflict (storage_key) do update set due_at = excluded.due_at)
  select count(*)::int as count from gone`;
const THREADS = `with gone as (delete from threads where id in (
    select id from threads t where inbox_id = ? and not exists (select from messages m where m.thread_id = t.id)
    limit ${BATCH}) returning id)
  select count(*)::int as count from gone`;

async function removeSome(em: EntityManager, inboxId: string, sql: string): Promise<number> {
  const [row] = await em.execute<{ count: number }[]>(sql, [inboxId]);
  return row?.count ?? 0;
}

async function isToBePurged(database: Database, inboxId: string): Promise<boolean> {
  const rows = await database.statement<{ id: string }>(
    'select id from inboxes where id = ? and purge_requested_at is not null',
    [inboxId],
  );
  return rows.length > 0;
}

async function finish(database: Database, inboxId: string): Promise<void> {
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
export function startOfPurge(inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>) {
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
      const rows = await takeOverdue<Parameters<typeof startOfPurge>[0]>(database, {
        table: 'inboxes',
        overdue: `purge_requested_at < now() - interval '2 minutes' and purged_at is null`,
        columns: 'id, org_id as "organizationId", env_id as "environmentId"',
        limit,
      });
      return rows.map((row) => ({ start: startOfPurge(row), whenStopped: 'restart' as const }));
    },
  };
}
