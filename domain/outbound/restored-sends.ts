import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { HELD_DETAIL } from './held-sends.ts';
import type { OutcomeService } from './outcome.service.ts';
import { RESTORED_RESPONSE, type SendAttemptState } from './send-attempt.entity.ts';
import { sentObjectKey } from './stored-mime.ts';
import { buildSendStart } from './workflow-commands.ts';

export interface RestoredSendsOptions {
  database: Database;
  storage: Pick<Storage, 'sizeOf'>;
  outcomes: OutcomeService;
  outbox: Outbox;
  /** Whether the send workflow may have transmitted since the backup; `unknown` if Temporal cannot prove it. */
  findTransmission(messageId: string): Promise<'none' | 'possible' | 'unknown'>;
  /** The bucket has every object up to the outage, so a message without a stored MIME message was never transmitted. */
  isStorageComplete: boolean;
}

type RestoredSend = Parameters<typeof buildSendStart>[0] & { isSandbox: boolean; isHeld: boolean };

const BATCH_SIZE = 200;
const MAX_CONCURRENT_CHECKS = 8;

/**
 * Decides about every message that was not settled in the backup. A message that provably has not been transmitted
 * since the backup is sent. Any other message needs attention, because only a person or a delivery report can tell
 * whether the recipients received it.
 *
 * @param createdBefore messages created later were created after the restore.
 */
export async function reconcileRestoredSends(
  options: RestoredSendsOptions,
  createdBefore: Date,
): Promise<{ resumed: number; needsAttention: number }> {
  const counts = { resumed: 0, needsAttention: 0 };
  for (let after = ''; ; ) {
    const sends = await findUnsettled(options.database, { createdBefore, after });
    const queue = sends.values();
    const reconcileNext = async () => {
      for (const send of queue) {
        const isUnsent = await wasNeverSent(options, send);
        const changed = isUnsent ? await resume(options, send) : await markAmbiguous(options, send);
        counts[isUnsent ? 'resumed' : 'needsAttention'] += changed;
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT_CHECKS }, reconcileNext));
    const last = sends.at(-1);
    if (!last || sends.length < BATCH_SIZE) return counts;
    after = last.id;
  }
}

function findUnsettled(
  { db }: Database,
  { createdBefore, after }: { createdBefore: Date; after: string },
): Promise<RestoredSend[]> {
  return db
    .selectFrom('messages as m')
    .innerJoin('environments as e', 'e.id', 'm.env_id')
    .select([
      'm.id',
      'm.org_id as organizationId',
      'm.env_id as environmentId',
      'm.inbox_id as inboxId',
      'm.thread_id as threadId',
      sql<boolean>`e.kind = 'sandbox'`.as('isSandbox'),
      sql<boolean>`m.status_detail is not distinct from ${HELD_DETAIL}`.as('isHeld'),
    ])
    .where('m.status', 'in', ['queued', 'sending', 'deferred'])
    .where('m.created_at', '<', createdBefore)
    .where('m.id', '>', after)
    .orderBy('m.id')
    .limit(BATCH_SIZE)
    .execute();
}

/** The MIME message is stored before the first attempt, under a key that the message's id determines. */
async function wasNeverSent(
  { storage, isStorageComplete, findTransmission }: RestoredSendsOptions,
  { id, isSandbox }: RestoredSend,
): Promise<boolean> {
  if (isSandbox) return true;
  if (isStorageComplete && (await storage.sizeOf(sentObjectKey(id))) === undefined) return true;
  return (await findTransmission(id)) === 'none';
}

/** A message on hold keeps waiting. */
async function resume({ database, outbox }: RestoredSendsOptions, send: RestoredSend): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    if (!(await restartRetryWindow(transaction.db, send))) return 0;
    if (!send.isHeld) outbox.enqueue(transaction, send.organizationId, { start: restartOf(send) });
    return 1;
  });
}

/** Records an ambiguous attempt for each unsettled recipient whose last attempt is not already ambiguous. */
async function markAmbiguous(
  { database, outcomes, outbox }: RestoredSendsOptions,
  send: RestoredSend,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    if (!(await restartRetryWindow(db, send))) return 0;
    await db
      .updateTable('send_attempts')
      .set({ state: 'ambiguous', response: RESTORED_RESPONSE, finished_at: sql`now()` })
      .where('message_id', '=', send.id)
      .where('state', '=', 'attempting')
      .execute();
    await insertAmbiguousAttempts(db, send);
    await outcomes.apply(transaction, send.id, []);
    // The run waits until the message is resolved.
    outbox.enqueue(transaction, send.organizationId, { start: restartOf(send) });
    return 1;
  });
}

/**
 * Locks the message and restarts its retry window, because the outage says nothing about the recipient's server.
 *
 * @returns false if the message is settled.
 */
async function restartRetryWindow(db: Db, { id }: RestoredSend): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('messages')
    .set({ queued_at: sql`now()`, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', 'in', ['queued', 'sending', 'deferred'])
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

async function insertAmbiguousAttempts(db: Db, { id, organizationId }: RestoredSend): Promise<void> {
  await db
    .insertInto('send_attempts')
    .columns(['message_id', 'position', 'number', 'org_id', 'state', 'response', 'started_at', 'finished_at'])
    .expression((query) =>
      query
        .selectFrom('message_recipients as r')
        .leftJoinLateral(
          (join) =>
            join
              .selectFrom('send_attempts as a')
              .select(['a.number', 'a.state'])
              .whereRef('a.message_id', '=', 'r.message_id')
              .whereRef('a.position', '=', 'r.position')
              .orderBy('a.number', 'desc')
              .limit(1)
              .as('last'),
          (join) => join.onTrue(),
        )
        .select([
          'r.message_id',
          'r.position',
          sql<number>`coalesce(last.number, 0) + 1`.as('number'),
          sql<string>`${organizationId}::text`.as('org_id'),
          sql<SendAttemptState>`'ambiguous'`.as('state'),
          sql<string>`${RESTORED_RESPONSE}::text`.as('response'),
          sql<Date>`now()`.as('started_at'),
          sql<Date>`now()`.as('finished_at'),
        ])
        .where('r.message_id', '=', id)
        .where('r.status', 'in', ['pending', 'deferred'])
        .where(({ eb, or }) => or([eb('last.state', 'is', null), eb('last.state', '=', 'deferred')])),
    )
    .execute();
}

const restartOf = (send: RestoredSend) => ({ ...buildSendStart(send), replacesCompleted: true });
