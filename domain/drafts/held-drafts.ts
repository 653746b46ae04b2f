import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { HELD_DETAIL, IS_REINSTATED } from '../outbound/held-sends.ts';
import { HAS_ABUSE_SUSPENSION } from '../suspensions/abuse-suspension.ts';
import type { Draft } from './draft.entity.ts';
import { buildScheduledSendStart } from './draft-schedule.ts';

const BATCH_SIZE = 200;

/**
 * Starts the runs of held drafts whose suspension has ended, like `releaseHeldSends`.
 *
 * @param organizationId default: all organizations.
 * @returns the number of released drafts, at most one batch.
 */
export async function releaseHeldDrafts(
  transaction: Transaction,
  outbox: Outbox,
  organizationId?: string,
): Promise<number> {
  const { db } = transaction;
  const held = db
    .selectFrom('drafts as held')
    .select('held.id')
    .where('held.send_status', '=', 'scheduled')
    .where('held.send_error', '=', HELD_DETAIL)
    .$if(organizationId !== undefined, (query) => query.where('held.org_id', '=', organizationId as string))
    .where(IS_REINSTATED)
    .orderBy('held.send_at')
    .limit(BATCH_SIZE)
    .forUpdate('held')
    .skipLocked();
  const released = await db
    .updateTable('drafts')
    .set({ send_error: null, updated_at: sql`now()` })
    .where('id', '=', anyLocked(held))
    .returning([
      'id',
      'org_id as organizationId',
      'env_id as environmentId',
      'inbox_id as inboxId',
      'schedule_version as scheduleVersion',
      'version',
      sql<Date>`send_at`.as('sendAt'),
    ])
    .execute();
  for (const draft of released)
    outbox.enqueue(transaction, draft.organizationId, {
      start: buildScheduledSendStart(draft, draft.sendAt),
    });
  return released.length;
}

/** The reconciler's source of held drafts. @returns the number of released drafts. */
export async function releaseAllHeldDrafts(database: Database, outbox: Outbox): Promise<number> {
  for (let total = 0; ; ) {
    const released = await database.systemTransaction((transaction) =>
      releaseHeldDrafts(transaction, outbox),
    );
    total += released;
    if (released < BATCH_SIZE) return total;
  }
}

/** Finds due drafts, held or not, that a suspension for abuse affects: at most one batch, oldest first. */
export function findDraftsSuspendedForAbuse(
  db: Db,
  organizationId: string,
): Promise<Pick<Draft, 'id' | 'scheduleVersion'>[]> {
  return db
    .selectFrom('drafts as d')
    .innerJoin('inboxes as i', 'i.id', 'd.inbox_id')
    .innerJoin('environments as e', 'e.id', 'i.env_id')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .select(['d.id', 'd.schedule_version as scheduleVersion'])
    .where('d.send_status', '=', 'scheduled')
    .where('d.send_at', '<=', sql<Date>`now()`)
    .where('d.org_id', '=', organizationId)
    .where(HAS_ABUSE_SUSPENSION)
    .orderBy('d.send_at')
    .limit(BATCH_SIZE)
    .execute();
}
