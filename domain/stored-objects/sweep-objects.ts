import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';

/** Uploads, and objects, of one transaction. */
const BATCH_SIZE = 500;
/** A sweep ends after these, or half a minute; the next one goes on where it ended. */
const MAX_BATCHES = 20;
const MAX_SWEEP_MS = 30_000;
/** Three quarters of its time belong to others: mail is sent meanwhile. */
const PAUSE_FACTOR = 3;
const MAX_PAUSE_MS = 5_000;

/** Removes uploads nothing has used for 24 h; their bytes are then found by {@link sweepObjects}. Returns how many. */
export async function deleteUnusedUploads(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    // One that is being attached is locked, and skipped.
    const { affectedRows } = await em.execute<{ affectedRows: number }>(
      `delete from attachments where id in (
         select id from attachments
         where message_id is null and draft_id is null and created_at < now() - interval '24 hours'
         order by created_at limit ? for update skip locked)`,
      [BATCH_SIZE],
      'run',
    );
    return affectedRows;
  });
}

/**
 * Deletes the bytes no row refers to any more. May die anywhere and run twice at once: an entry is first marked, then
 * its object deleted, then the entry. No row can come to a marked one: rows are made of rows that are there, which the
 * entry had none of, or by claiming an entry that is not marked.
 *
 * @returns how many objects went.
 */
export async function sweepObjects(
  database: Database,
  storage: Pick<Storage, 'deleteMany'>,
): Promise<number> {
  const endsAt = Date.now() + MAX_SWEEP_MS;
  let swept = 0;
  for (let batch = 0; batch < MAX_BATCHES && Date.now() < endsAt; batch += 1) {
    const startedAt = Date.now();
    const count = await sweepBatch(database, storage);
    swept += count;
    if (count === 0) break;
    await pause(Math.min(MAX_PAUSE_MS, (Date.now() - startedAt) * PAUSE_FACTOR));
  }
  return swept;
}

async function sweepBatch(database: Database, storage: Pick<Storage, 'deleteMany'>): Promise<number> {
  const keys = await markDueObjects(database);
  if (keys.length === 0) return 0;
  await storage.deleteMany(keys);
  await database.systemTransaction(async ({ em }) => {
    // What is left of receipts tells of a mail that is gone.
    await em.execute(`delete from inbound_receipts where raw_key in (${placeholders(keys)})`, keys);
    await em.execute(
      `delete from unclaimed_objects where deleting and storage_key in (${placeholders(keys)})`,
      keys,
    );
  });
  return keys.length;
}

/** Marks what is due and has no row; takes what has one off the list. One mail may be several receipts. */
async function markDueObjects(database: Database): Promise<string[]> {
  return database.systemTransaction(async ({ em }) => {
    const locked = await em.execute<{ key: string }[]>(
      `select storage_key as key from unclaimed_objects where due_at <= now()
       order by due_at limit ? for update skip locked`,
      [BATCH_SIZE],
    );
    if (locked.length === 0) return [];
    const due = locked.map(({ key }) => key);
    // A statement of its own, so that it sees what was committed while the locks were taken.
    await em.execute(
      `delete from unclaimed_objects d where storage_key in (${placeholders(due)})
       and (exists (select from attachments a where a.storage_key = d.storage_key)
         or exists (select from unattributed_reports u where u.raw_key = d.storage_key)
         or exists (select from inbound_receipts r where r.raw_key = d.storage_key
           and (r.status = 'received'
             or r.kind = 'mail' and exists (select from messages m where m.id = r.message_id))))`,
      due,
    );
    const marked = await em.execute<{ key: string }[]>(
      `update unclaimed_objects set deleting = true where storage_key in (${placeholders(due)}) returning storage_key as key`,
      due,
    );
    return marked.map(({ key }) => key);
  });
}

const placeholders = (values: unknown[]) => values.map(() => '?').join(', ');
