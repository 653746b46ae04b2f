import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Sql } from '../../../platform/database/sql.ts';
import type { Outbox } from '../../../platform/outbox/outbox.ts';
import { buildSendStart } from '../create-outbound-message.ts';

/**
 * `status_detail` of a message, and `send_error` of a scheduled draft, that waits for the end of a suspension or for the
 * recovery of a closed organization.
 */
export const HELD_DETAIL =
  'Held while the organization, environment or inbox is suspended, or the organization is closed.';

/** SQL: a row with the columns `org_id`, `env_id` and `inbox_id` is affected by no suspension, and its organization is open. */
export const IS_REINSTATED = sql`exists (
  select from inboxes i join environments e on e.id = i.env_id join organizations o on o.id = i.org_id
  where i.id = held.inbox_id and i.status = 'active' and e.status = 'active' and o.status = 'active'
    and o.deleted_at is null)`;

/** SQL condition on the row `held`. */
export const isOf = (organizationId: string | undefined): Sql =>
  organizationId === undefined ? sql`true` : sql`held.org_id = ${organizationId}`;

const BATCH_SIZE = 200;

/**
 * Starts held messages whose suspension has ended. The commit starts their runs. The run of the reinstatement calls it
 * until none is left; the sweep {@link releaseAllHeldSends} takes what was held at that moment.
 *
 * @param organizationId default: all organizations.
 * @returns the number of released messages, at most one batch.
 */
export async function releaseHeldSends(
  transaction: Transaction,
  outbox: Outbox,
  organizationId?: string,
): Promise<number> {
  // The window for retries starts again: a suspension is not the recipient's delay.
  const released = await transaction.em.execute<Parameters<typeof buildSendStart>[0][]>(sql`
    update messages set status_detail = null, queued_at = now(), updated_at = now()
    where id = any(array(
      select held.id from messages held
      where held.status in ('queued', 'sending', 'deferred') and held.status_detail = ${HELD_DETAIL}
        and ${isOf(organizationId)} and ${IS_REINSTATED}
      order by held.id limit ${BATCH_SIZE} for update of held skip locked))
    returning id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId", thread_id as "threadId"`);
  for (const message of released)
    outbox.enqueue(transaction, message.organizationId, { start: buildSendStart(message) });
  return released.length;
}

/** The reconciler's source of held messages. @returns the number of released messages. */
export async function releaseAllHeldSends(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) => releaseHeldSends(transaction, outbox));
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}
