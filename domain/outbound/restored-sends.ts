import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { HELD_DETAIL } from './held-sends.ts';
import type { OutcomeService } from './outcome.service.ts';
import { buildSendStart } from './send.service.ts';
import { RESTORED_RESPONSE } from './send-attempt.entity.ts';
import { sentObjectKey } from './stored-mime.ts';

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
 * Decides about every message that was not settled in the backup. A message that has provably not been transmitted since is
 * sent. Any other needs attention, because only a person or a delivery report can say whether its recipients have it.
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
  database: Database,
  { createdBefore, after }: { createdBefore: Date; after: string },
): Promise<RestoredSend[]> {
  return database.query<RestoredSend>(sql`
    select m.id, m.org_id as "organizationId", m.env_id as "environmentId", m.inbox_id as "inboxId",
      m.thread_id as "threadId", e.kind = 'sandbox' as "isSandbox",
      m.status_detail is not distinct from ${HELD_DETAIL} as "isHeld"
    from messages m join environments e on e.id = m.env_id
    where m.status in ('queued', 'sending', 'deferred') and m.created_at < ${createdBefore.toISOString()}::timestamptz
      and m.id > ${after}
    order by m.id limit ${BATCH_SIZE}`);
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

/** The retry window starts again, because the outage says nothing about the recipient's server. A held message keeps waiting. */
async function resume({ database, outbox }: RestoredSendsOptions, send: RestoredSend): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const updated = await transaction.em.execute<object[]>(sql`
      update messages set queued_at = now(), updated_at = now()
      where id = ${send.id} and status in ('queued', 'sending', 'deferred') returning id`);
    if (updated.length > 0 && !send.isHeld)
      outbox.enqueue(transaction, send.organizationId, { start: restartOf(send) });
    return updated.length;
  });
}

/** Records an ambiguous attempt for each unsettled recipient, unless the result of its last attempt is unknown already. */
async function markAmbiguous(
  { database, outcomes, outbox }: RestoredSendsOptions,
  send: RestoredSend,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    // Locks the message. The retry window starts again, as above.
    const updated = await em.execute<object[]>(sql`
      update messages set queued_at = now(), updated_at = now()
      where id = ${send.id} and status in ('queued', 'sending', 'deferred') returning id`);
    if (updated.length === 0) return 0;
    await em.execute(sql`
      update send_attempts set state = 'ambiguous', response = ${RESTORED_RESPONSE}, finished_at = now()
      where message_id = ${send.id} and state = 'attempting'`);
    await em.execute(sql`
      insert into send_attempts (message_id, position, number, org_id, state, response, started_at, finished_at)
      select r.message_id, r.position, coalesce(last.number, 0) + 1, ${send.organizationId}, 'ambiguous',
        ${RESTORED_RESPONSE}, now(), now()
      from message_recipients r left join lateral (
        select number, state from send_attempts a where a.message_id = r.message_id and a.position = r.position
        order by number desc limit 1) last on true
      where r.message_id = ${send.id} and r.status in ('pending', 'deferred')
        and (last.state is null or last.state = 'deferred')`);
    await outcomes.apply(transaction, send.id, []);
    // The run waits until the message is resolved.
    outbox.enqueue(transaction, send.organizationId, { start: restartOf(send) });
    return 1;
  });
}

const restartOf = (send: RestoredSend) => ({ ...buildSendStart(send), replacesCompleted: true });
