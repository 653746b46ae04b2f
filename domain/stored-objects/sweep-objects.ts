import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
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
 * @param organizationId only objects of this organization, which do not wait for those of others.
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
  await database.systemTransaction(async ({ em }) => {
    // The remaining receipts belong to deleted messages.
    await em.execute(sql`delete from inbound_receipts where raw_key in (${keys})`);
    await em.execute(sql`delete from unclaimed_objects where deleting and storage_key in (${keys})`);
  });
  return keys.length;
}

/**
 * Marks the due entries whose object has no row, and deletes the entries whose object has one. Several receipts may
 * refer to the same message.
 */
async function markDueObjects(database: Database, organizationId: string | undefined): Promise<string[]> {
  const owned = organizationId === undefined ? sql`` : sql`and org_id = ${organizationId}`;
  return database.systemTransaction(async ({ em }) => {
    const locked = await em.execute<{ key: string }[]>(
      sql`select storage_key as key from unclaimed_objects where due_at <= now() ${owned}
       order by due_at limit ${BATCH_SIZE} for update skip locked`,
    );
    if (locked.length === 0) return [];
    const due = locked.map(({ key }) => key);
    // A separate statement sees what was committed while the locks were acquired.
    await em.execute(
      sql`delete from unclaimed_objects d where storage_key in (${due})
       and (exists (select from attachments a where a.storage_key = d.storage_key)
         or exists (select from unattributed_reports u where u.raw_key = d.storage_key)
         or exists (select from inbound_receipts r where r.raw_key = d.storage_key
           and (r.status = 'received'
             or r.kind = 'mail' and exists (select from messages m where m.id = r.message_id))))`,
    );
    const marked = await em.execute<{ key: string }[]>(
      sql`update unclaimed_objects set deleting = true where storage_key in (${due}) returning storage_key as key`,
    );
    return marked.map(({ key }) => key);
  });
}
