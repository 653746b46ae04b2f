import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import { buildSendStart } from './send.service.ts';

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
export const isOfOrganization = (organizationId: string | undefined): Sql =>
  organizationId === undefined ? sql`true` : sql`held.org_id = ${organizationId}`;

const BATCH_SIZE = 200;

/**
 * Starts held messages whose suspension has ended. The commit starts their runs. The workflow that settles held work calls
 * this until none is left; the sweep {@link releaseAllHeldSends} releases those that were being held at that moment.
 *
 * @param organizationId default: all organizations.
 * @returns the number of released messages, at most one batch.
 */
export async function releaseHeldSends(
  transaction: Transaction,
  outbox: Outbox,
  organizationId?: string,
): Promise<number> {
  // The retry window starts again, because the suspension says nothing about the recipient's server.
  const released = await transaction.em.execute<Parameters<typeof buildSendStart>[0][]>(sql`
    update messages set status_detail = null, queued_at = now(), updated_at = now()
    where id = any(array(
      select held.id from messages held
      where held.status in ('queued', 'sending', 'deferred') and held.status_detail = ${HELD_DETAIL}
        and ${isOfOrganization(organizationId)} and ${IS_REINSTATED}
      order by held.id limit ${BATCH_SIZE} for update of held skip locked))
    returning id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId", thread_id as "threadId"`);
  for (const message of released)
    outbox.enqueue(transaction, message.organizationId, { start: buildSendStart(message) });
  return released.length;
}

/** A sweep of the reconciler. @returns the number of released messages. */
export async function releaseAllHeldSends(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) => releaseHeldSends(transaction, outbox));
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}

/** `status_detail` of a message that waits until staff switch sending on again. */
export const SWITCHED_OFF_DETAIL = 'Held while the operator of the service has switched sending off.';

/**
 * Starts messages that were held because sending was switched off, oldest first, unless it still is. The commit starts
 * their runs.
 *
 * @returns the number of released messages, at most one batch.
 */
export async function releaseSwitchedOffSends(transaction: Transaction, outbox: Outbox): Promise<number> {
  // The retry window starts again, as after a suspension.
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

/** A sweep of the reconciler, for messages that the workflow of the release missed. @returns the number of released messages. */
export async function releaseAllSwitchedOffSends(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) =>
      releaseSwitchedOffSends(transaction, outbox),
    );
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}
