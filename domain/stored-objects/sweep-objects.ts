import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Storage } from '../../platform/storage.ts';

/** Objects per transaction. */
const BATCH_SIZE = 500;
/** A sweep ends after this many batches or {@link MAX_SWEEP_MS}; the next sweep continues. */
const MAX_BATCHES = 20;
const MAX_SWEEP_MS = 30_000;
/** A pause lasts three times as long as its batch, which leaves three quarters of the capacity to sending mail. */
const PAUSE_FACTOR = 3;
const MAX_PAUSE_MS = 5_000;

/**
 * Deletes the objects that are no longer referenced by any row. It can crash at any point and run concurrently: it
 * marks an entry, then deletes the object, then the entry. A marked object cannot get a new row, because a new row
 * either copies the key of an existing row (there is none) or claims an unmarked entry.
 *
 * @param organizationId deletes only objects of this organization, which then do not wait for those of others.
 * @returns the number of deleted objects.
 */
export async function sweepObjects(
  database: Database,
  storage: Pick<Storage, 'deleteMany'>,
  organizationId?: string,
): Promise<number> {
  const endsAt = Date.now() + MAX_SWEEP_MS;
  let swept = 0;
  for (let batch = 0; batch < MAX_BATCHES && Date.now() < endsAt; batch += 1) {
    const startedAt = Date.now();
    const count = await sweepBatch(database, storage, organizationId);
    swept += count;
    if (count === 0) break;
    await pause(Math.min(MAX_PAUSE_MS, (Date.now() - startedAt) * PAUSE_FACTOR));
  }
  return swept;
}

async function sweepBatch(
  database: Database,
  storage: Pick<Storage, 'deleteMany'>,
  organizationId: string | undefined,
): Promise<number> {
  const keys = await markDueObjects(database, organizationId);
  if (keys.length === 0) return 0;
  await storage.deleteMany(keys);
  await database.systemTransaction(async ({ db }) => {
    // The remaining receipts belong to deleted messages.
    await db.deleteFrom('inbound_receipts').where('raw_key', '=', anyOf(keys)).execute();
    await db
      .deleteFrom('unclaimed_objects')
      .where('deleting', '=', true)
      .where('storage_key', '=', anyOf(keys))
      .execute();
  });
  return keys.length;
}

/**
 * Marks the due entries whose object has no row, and deletes the entries whose object has one. Several receipts may
 * refer to the same message.
 */
async function markDueObjects(database: Database, organizationId: string | undefined): Promise<string[]> {
  return database.systemTransaction(async ({ db }) => {
    const locked = await db
      .selectFrom('unclaimed_objects')
      .select('storage_key as key')
      .where('due_at', '<=', sql<Date>`now()`)
      .$if(organizationId !== undefined, (query) => query.where('org_id', '=', organizationId ?? null))
      .orderBy('due_at')
      .limit(BATCH_SIZE)
      .forUpdate()
      .skipLocked()
      .execute();
    if (locked.length === 0) return [];
    const due = locked.map(({ key }) => key);
    // A separate statement sees what was committed while the locks were acquired.
    await deleteReferencedEntries(db, due);
    const marked = await db
      .updateTable('unclaimed_objects')
      .set({ deleting: true })
      .where('storage_key', '=', anyOf(due))
      .returning('storage_key as key')
      .execute();
    return marked.map(({ key }) => key);
  });
}

async function deleteReferencedEntries(db: Db, keys: readonly string[]): Promise<void> {
  await db
    .deleteFrom('unclaimed_objects as entry')
    .where('storage_key', '=', anyOf(keys))
    .where(({ or, exists, selectFrom }) =>
      or([
        exists(selectFrom('attachments').whereRef('storage_key', '=', 'entry.storage_key')),
        exists(selectFrom('attachments').whereRef('text_key', '=', 'entry.storage_key')),
        exists(selectFrom('unattributed_reports').whereRef('raw_key', '=', 'entry.storage_key')),
        exists(
          selectFrom('inbound_receipts as receipt')
            .whereRef('receipt.raw_key', '=', 'entry.storage_key')
            .where((eb) =>
              eb.or([
                eb('receipt.status', '=', 'received'),
                eb.and([
                  eb('receipt.kind', '=', 'mail'),
                  eb.exists(eb.selectFrom('messages').whereRef('messages.id', '=', 'receipt.message_id')),
                ]),
              ]),
            ),
        ),
      ]),
    )
    .execute();
}
