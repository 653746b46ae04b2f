import { type RawBuilder, sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import { buildSendStart } from './workflow-commands.ts';

/**
 * `status_detail` of a message, and `send_error` of a scheduled draft, that waits for the end of a suspension or for the
 * recovery of a closed organization.
 */
export const HELD_DETAIL =
  'Held while the organization, environment or inbox is suspended, or the organization is closed.';

/** `status_detail` of a message that waits until staff switch sending on again. */
export const SWITCHED_OFF_DETAIL = 'Held while the operator of the service has switched sending off.';

const HELD_DETAILS = [HELD_DETAIL, SWITCHED_OFF_DETAIL];

/** Whether a message with this `status_detail` is held. */
export const isHeldDetail = (statusDetail: string | null): boolean =>
  statusDetail !== null && HELD_DETAILS.includes(statusDetail);

const isHeldIn = (detail: RawBuilder<unknown>) =>
  sql<boolean>`coalesce(${detail} in (${sql.join(HELD_DETAILS)}), false)`;

/** SQL: whether a message is held. */
export const IS_HELD = isHeldIn(sql`status_detail`);

/** SQL: whether the message `m` is to be sent if the gate allows it. It is not if it is settled or held, or waits for a decision. */
export const IS_UNSENT = sql<boolean>`m.status in ('queued', 'deferred', 'sending') and not ${isHeldIn(sql`m.status_detail`)}`;

/** SQL: no suspension affects the inbox of the row `held`, and its organization is open. */
export const IS_REINSTATED = sql<boolean>`exists (
  select from inboxes i join environments e on e.id = i.env_id join organizations o on o.id = i.org_id
  where i.id = held.inbox_id and i.status = 'active' and e.status = 'active' and o.status = 'active'
    and o.deleted_at is null)`;

const BATCH_SIZE = 200;

/**
 * Starts held messages whose suspension has ended. The commit starts their runs. The workflow that settles held work
 * calls this until no message is left; the sweep {@link releaseAllHeldSends} releases messages that were being held at
 * that moment.
 *
 * @param organizationId default: all organizations.
 * @returns the number of released messages, at most one batch.
 */
export function releaseHeldSends(
  transaction: Transaction,
  outbox: Outbox,
  organizationId?: string,
): Promise<number> {
  const held = selectHeld(transaction.db, HELD_DETAIL)
    .$if(organizationId !== undefined, (query) => query.where('held.org_id', '=', organizationId as string))
    .where(IS_REINSTATED)
    .orderBy('held.id');
  return release(transaction, outbox, held);
}

/** A sweep of the reconciler. @returns the number of released messages. */
export const releaseAllHeldSends = (database: Database, outbox: Outbox): Promise<number> =>
  releaseAll(database, (transaction) => releaseHeldSends(transaction, outbox));

/**
 * Starts messages that were held because sending was switched off, oldest first. Does nothing while sending is switched
 * off. The commit starts their runs.
 *
 * @returns the number of released messages, at most one batch.
 */
export function releaseSwitchedOffSends(transaction: Transaction, outbox: Outbox): Promise<number> {
  const held = selectHeld(transaction.db, SWITCHED_OFF_DETAIL)
    .where((eb) => eb.not(isSwitchedOff('sending')))
    .orderBy('held.updated_at');
  return release(transaction, outbox, held);
}

/** A sweep of the reconciler, for messages that the workflow of the release missed. @returns the number of released messages. */
export const releaseAllSwitchedOffSends = (database: Database, outbox: Outbox): Promise<number> =>
  releaseAll(database, (transaction) => releaseSwitchedOffSends(transaction, outbox));

const selectHeld = (db: Db, detail: string) =>
  db
    .selectFrom('messages as held')
    .select('held.id')
    .where('held.status', 'in', ['queued', 'sending', 'deferred'])
    .where('held.status_detail', '=', detail)
    .limit(BATCH_SIZE)
    .forUpdate('held')
    .skipLocked();

/** Restarts the retry window, because the time on hold says nothing about the recipient's server. */
async function release(
  transaction: Transaction,
  outbox: Outbox,
  held: ReturnType<typeof selectHeld>,
): Promise<number> {
  const released = await transaction.db
    .updateTable('messages')
    .set({ status_detail: null, queued_at: sql`now()`, updated_at: sql`now()` })
    .where('id', '=', anyLocked(held))
    .returning([
      'id',
      'org_id as organizationId',
      'env_id as environmentId',
      'inbox_id as inboxId',
      'thread_id as threadId',
    ])
    .execute();
  for (const message of released)
    outbox.enqueue(transaction, message.organizationId, { start: buildSendStart(message) });
  return released.length;
}

async function releaseAll(
  database: Database,
  releaseBatch: (transaction: Transaction) => Promise<number>,
): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction(releaseBatch);
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}
