import { type Expression, sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Db } from '../../platform/database/tables.ts';
import { releaseObjects } from '../stored-objects/unclaimed-objects.ts';

/** Long enough to investigate a report or a dropped duplicate. */
const RETENTION_DAYS = 30;
/** Maximum number of rows per sweep. */
const BATCH_SIZE = 5_000;

/**
 * Deletes receipts of applied reports, of duplicates and of discarded messages after 30 days. The next sweep deletes their
 * bytes, unless another receipt refers to them. The receipt of a message is deleted with the message. Returns the number of
 * deleted receipts.
 */
export async function deleteExpiredReceipts({ db }: Pick<Database, 'db'>): Promise<number> {
  const expired = db
    .selectFrom('inbound_receipts')
    .select('id')
    .where((eb) =>
      eb.or([eb('kind', '=', 'report'), eb('duplicate_of', 'is not', null), eb('status', '=', 'discarded')]),
    )
    .where('status', '<>', 'received')
    .where('processed_at', '<', sql<Date>`now() - ${RETENTION_DAYS} * interval '1 day'`)
    .limit(BATCH_SIZE)
    .forUpdate()
    .skipLocked();
  const deleted = await db
    .with('deleted', (deleting) =>
      deleting
        .deleteFrom('inbound_receipts')
        .where('id', '=', anyLocked(expired))
        .returning(['raw_key', 'org_id']),
    )
    .with('released', (deleting) =>
      releaseObjects(
        db,
        deleting
          .selectFrom('deleted')
          .distinctOn('raw_key')
          .select(['raw_key as storage_key', 'org_id', DUE_NOW.as('due_at')]),
      ),
    )
    .selectFrom('deleted')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return deleted?.count ?? 0;
}

/**
 * Deletes receipts of an inbox and registers their objects for deletion, because no message refers to the bytes of a
 * report or a duplicate. Returns the number of deleted receipts.
 */
export function deleteInboxReceipts(
  { db }: Pick<Database, 'db'>,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  const receipts = db
    .selectFrom('inbound_receipts')
    .select('id')
    .where('inbox_id', '=', inboxId)
    .limit(batchSize);
  return deleteReceipts(db, receipts);
}

/** Deletes the remaining receipts of a purged organization and registers their objects for deletion. */
export async function deleteOrganizationReceipts(db: Db, organizationId: string): Promise<void> {
  await deleteReceipts(
    db,
    db.selectFrom('inbound_receipts').select('id').where('org_id', '=', organizationId),
  );
}

async function deleteReceipts(db: Db, ids: Expression<{ id: string }>): Promise<number> {
  const deleted = await db
    .with('deleted', (deleting) =>
      deleting
        .deleteFrom('inbound_receipts')
        .where(sql<boolean>`id in ${ids}`)
        .returning(['raw_key', 'org_id']),
    )
    .with('released', (deleting) =>
      releaseObjects(
        db,
        deleting
          .selectFrom('deleted')
          .distinct()
          .select(['raw_key as storage_key', 'org_id', DUE_NOW.as('due_at')]),
      ),
    )
    .selectFrom('deleted')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return deleted?.count ?? 0;
}
