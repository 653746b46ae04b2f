import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { TRACKING_WINDOW_MS } from '../../workflows/outbound/track-delivery.contract.ts';
import { endTracking, ON_ITS_WAY } from '../messages/deletion.service.ts';
import { HIDDEN_LABELS } from '../messages/hidden-labels.ts';
import type { Message } from '../messages/message.entity.ts';
import { refreshThreads } from '../messages/refresh-thread.ts';

export interface ExpiredBatch {
  organizationId: string;
  environmentId: string;
  /** What was received or sent before it goes. */
  before: Date;
  /** The last message a batch before this one looked at; empty at the beginning. */
  after: string | null;
  now: Date;
}

export interface DeletedBatch {
  messages: number;
  threads: number;
  /** The last message looked at; empty where there is none left. */
  last: string | null;
}

/** Messages of one transaction: it holds their threads' locks for some tens of milliseconds. */
export const BATCH = 200;
/** A conversation of more is summed up once, when the last of its old messages goes, and only counted until then. */
const SHORT_THREAD = 100;

/**
 * Deletes the next of an environment's old messages, in order of their ids: with recipients, attempts, attachments,
 * words and receipts; their bytes go with the sweeps of storage. Threads left empty go, the others show the rest.
 * Drafts stay, and so does what is on its way.
 *
 * Ids are made in order of time, so the batch is one range of an index, and begins where the last one ended: it never
 * reads what was deleted before. Threads are locked before messages, as everybody does.
 */
export async function deleteExpiredBatch(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  batch: ExpiredBatch,
): Promise<DeletedBatch> {
  const { em } = transaction;
  const until = lowestIdAt('message', batch.before);
  const found = await findNext(em, batch, until);
  const last = found.at(-1)?.id ?? null;
  if (last === null) return { messages: 0, threads: 0, last };
  const threadIds = [...new Set(found.map(({ threadId }) => threadId))];
  await em.execute(
    `select id from threads where id in (${places(threadIds)}) order by id for update`,
    threadIds,
  );
  const gone = await deleteMessages(em, batch, found);
  endRecentTracking(transaction, outbox, batch, gone);
  const threads = await leaveThreads(em, gone, { last, until, before: batch.before });
  return { messages: gone.length, threads, last };
}

/** Whether an environment has messages that are old enough; some of them may be on their way. */
export async function hasExpired(em: EntityManager, environmentId: string, before: Date): Promise<boolean> {
  const found = await findNext(em, { environmentId, after: null }, lowestIdAt('message', before), 1);
  return found.length > 0;
}

// Compared as rows, so that only the index of both columns gives the order: with an equality on the environment the
// planner may walk the primary key instead, through the mail of everybody else.
const NEXT = `select id, thread_id as "threadId" from messages
  where (env_id, id) > (?, ?) and (env_id, id) < (?, ?) order by env_id, id limit ?`;

function findNext(
  em: EntityManager,
  { environmentId, after }: Pick<ExpiredBatch, 'environmentId' | 'after'>,
  until: string,
  limit = BATCH,
): Promise<{ id: string; threadId: string }[]> {
  return em.execute(NEXT, [environmentId, after ?? '', environmentId, until, limit]);
}

type Gone = Pick<Message, 'id' | 'threadId' | 'tracked' | 'status'> & { hidden: boolean; recent: boolean };

/** A message's id is made when it is written down; it may have left much later. */
const OLD = `coalesce(received_at, sent_at, created_at) < ?`;

function deleteMessages(
  em: EntityManager,
  { before, now }: ExpiredBatch,
  found: { id: string }[],
): Promise<Gone[]> {
  const ids = found.map(({ id }) => id);
  const statuses = [...ON_ITS_WAY];
  return em.execute(
    `with gone as (
       delete from messages where id in (${places(ids)}) and status not in (${places(statuses)}) and ${OLD}
       returning id, thread_id as "threadId", tracked, status, labels && ?::text[] as hidden,
         coalesce(sent_at > ?, false) as recent),
     receipts as (delete from inbound_receipts where id in (select 'rcp_' || substr(id, 5) from gone))
     select * from gone`,
    [
      ...ids,
      ...statuses,
      before,
      `{${HIDDEN_LABELS.join(',')}}`,
      new Date(now.getTime() - TRACKING_WINDOW_MS),
    ],
  );
}

/** Older waits for an outcome have ended by themselves: a signal for each would cost more than the deletion. */
function endRecentTracking(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { organizationId }: ExpiredBatch,
  gone: Gone[],
): void {
  const recent = gone.filter((message) => message.recent).map((message) => ({ ...message, organizationId }));
  endTracking(transaction, outbox, recent);
}

/** What is left of the walk: messages behind `last` and below `until`, of which those of `before` go. */
interface RestOfWalk {
  last: string;
  until: string;
  before: Date;
}

/** @returns how many threads went. */
async function leaveThreads(em: EntityManager, gone: Gone[], rest: RestOfWalk): Promise<number> {
  const ofThread = Map.groupBy(gone, ({ threadId }) => threadId);
  const ids = [...ofThread.keys()];
  if (ids.length === 0) return 0;
  const empty = await em.execute<{ id: string }[]>(
    `delete from threads t where id in (${places(ids)})
       and not exists (select from messages m where m.thread_id = t.id) returning id`,
    ids,
  );
  for (const { id } of empty) ofThread.delete(id);
  await summarize(em, ofThread, rest);
  return empty.length;
}

/**
 * A conversation of very many messages would be read whole for every batch it is in. While more of it is about to go,
 * its count follows, and the rest of its summary waits for the last of them.
 */
async function summarize(
  em: EntityManager,
  ofThread: Map<string, Gone[]>,
  { last, until, before }: RestOfWalk,
): Promise<void> {
  const ids = [...ofThread.keys()];
  if (ids.length === 0) return;
  const goOn = await em.execute<{ id: string; lastMessageId: string | null }[]>(
    `select id, last_message_id as "lastMessageId" from threads t
     where id in (${places(ids)}) and message_count > ${SHORT_THREAD} and exists (
       select from messages m where (m.thread_id, m.id) > (t.id, ?) and (m.thread_id, m.id) < (t.id, ?)
         and status not in (${places(ON_ITS_WAY)}) and ${OLD})`,
    [...ids, last, until, ...ON_ITS_WAY, before],
  );
  const counted = goOn.filter(({ id, lastMessageId }) =>
    ofThread.get(id)?.every((message) => message.id !== lastMessageId),
  );
  for (const { id } of counted) {
    const shown = ofThread.get(id)?.filter(({ hidden }) => !hidden).length ?? 0;
    await em.execute('update threads set message_count = message_count - ? where id = ?', [shown, id]);
    ofThread.delete(id);
  }
  await refreshThreads(em, [...ofThread.keys()]);
}

const places = (values: readonly unknown[]) => values.map(() => '?').join(', ');
