import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Outbox } from '../../../platform/outbox/outbox.ts';
import { isOffSql } from '../../toggles/find-toggle.ts';
import { buildSendStart } from '../create-outbound-message.ts';

/** `status_detail` of a message that waits until staff switch sending on again. */
export const SWITCHED_OFF_DETAIL = 'Held while the operator of the service has switched sending off.';

const BATCH_SIZE = 200;

/**
 * Starts messages that were held while sending was switched off, oldest first; none while it is. The commit starts their
 * runs.
 *
 * @returns the number of released messages, at most one batch.
 */
export async function releaseSwitchedOffSends(transaction: Transaction, outbox: Outbox): Promise<number> {
  // The window for retries starts again, as after a suspension.
  const released = await transaction.em.execute<Parameters<typeof buildSendStart>[0][]>(sql`
    update messages set status_detail = null, queued_at = now(), updated_at = now()
    where id = any(array(
      select held.id from messages held
      where held.status in ('queued', 'sending', 'deferred') and held.status_detail = ${SWITCHED_OFF_DETAIL}
        and not ${isOffSql('sending')}
      order by held.updated_at limit ${BATCH_SIZE} for update of held skip locked))
    returning id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId", thread_id as "threadId"`);
  for (const message of released)
    outbox.enqueue(transaction, message.organizationId, { start: buildSendStart(message) });
  return released.length;
}

/** The reconciler's source of messages that the run of the release left. @returns the number of released messages. */
export async function releaseAllSwitchedOffSends(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) =>
      releaseSwitchedOffSends(transaction, outbox),
    );
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}
