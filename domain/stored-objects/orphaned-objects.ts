import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { idFromBytes, idToBytes, isId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';

/** A newer object may still get its row: storing a message can take days during an outage. */
const MIN_OBJECT_AGE_MS = 7 * 86_400_000;
/** The sweep checks a registered object again after this delay, and only then deletes it. */
const RECHECK_DELAY = '1 day';
/** The search pauses after each page for as long as the page took, so that it uses at most half the capacity. */
const MAX_PAUSE_MS = 10_000;

/** Prefixes of message objects, in key order. The search ignores everything else in the bucket. */
const PREFIXES = ['attachments/', 'raw/'] as const;

export interface OrphanSearchProgress {
  /** The last key scanned; empty at the beginning. */
  lastKey: string;
  scanned: number;
  /** Orphaned objects added to `unclaimed_objects`. */
  registered: number;
}

export interface OrphanSearchOptions {
  database: Database;
  storage: Pick<Storage, 'listPage'>;
  now?: () => Date;
  pause?: (ms: number) => Promise<unknown>;
}

/**
 * Scans the bucket page by page for objects without a row and without an entry in `unclaimed_objects`, and registers
 * them for the sweep ({@link sweepObjects}), which deletes them. Orphans remain when a listener is killed while it
 * receives a message, when a message is stored without its files, or when a backup is restored.
 *
 * @param from where the previous attempt ended.
 * @param onPage called after each page.
 */
export async function registerOrphanedObjects(
  { database, storage, now = () => new Date(), pause = sleep }: OrphanSearchOptions,
  from: OrphanSearchProgress,
  onPage: (progress: OrphanSearchProgress) => void,
): Promise<OrphanSearchProgress> {
  let progress = from;
  for (const prefix of PREFIXES) {
    for (let isLast = progress.lastKey > `${prefix}\uffff`; !isLast; ) {
      const startedAt = performance.now();
      const page = await storage.listPage(
        prefix,
        progress.lastKey.startsWith(prefix) ? progress.lastKey : undefined,
      );
      const modifiedBefore = now().getTime() - MIN_OBJECT_AGE_MS;
      const oldKeys = page.objects
        .filter(({ lastModified }) => lastModified.getTime() < modifiedBefore)
        .map(({ key }) => key);
      const registered = await registerKeys(database, await findUnreferencedKeys(database, oldKeys));
      progress = {
        lastKey: page.objects.at(-1)?.key ?? progress.lastKey,
        scanned: progress.scanned + page.objects.length,
        registered: progress.registered + registered,
      };
      onPage(progress);
      isLast = page.isLast || page.objects.length === 0;
      await pause(Math.min(MAX_PAUSE_MS, performance.now() - startedAt));
    }
  }
  return progress;
}

/** Returns the keys that are not referenced by any row. */
async function findUnreferencedKeys(database: Database, keys: string[]): Promise<string[]> {
  if (keys.length === 0) return [];
  const { db } = database;
  const known = await db
    .selectFrom('attachments')
    .select('storage_key as key')
    .where('storage_key', '=', anyOf(keys))
    .unionAll(
      db
        .selectFrom('attachments')
        .select(({ fn }) => fn.coalesce('text_key', 'storage_key').as('key'))
        .where('text_key', '=', anyOf(keys)),
    )
    .unionAll(db.selectFrom('inbound_receipts').select('raw_key as key').where('raw_key', '=', anyOf(keys)))
    .unionAll(
      db.selectFrom('unattributed_reports').select('raw_key as key').where('raw_key', '=', anyOf(keys)),
    )
    .unionAll(
      db.selectFrom('unclaimed_objects').select('storage_key as key').where('storage_key', '=', anyOf(keys)),
    )
    .execute();
  const knownKeys = new Set(known.map(({ key }) => key));
  const unknownKeys = keys.filter((key) => !knownKeys.has(key));
  const ownerIds = new Map(unknownKeys.map((key) => [key, parseOwnerIds(key)]));
  const existingIds = await findExistingIds(database, [...ownerIds.values()].flat());
  // Keeps a key without a recognizable owner: an extra object is better than a lost one.
  return unknownKeys.filter((key) => {
    const ids = ownerIds.get(key) ?? [];
    return ids.length > 0 && !ids.some((id) => existingIds.has(id));
  });
}

/**
 * The ids of rows that own an object according to its key: the message, and the receipt it is created from. Files are
 * stored before their rows exist. Empty for other keys, and for submitted messages: their keys do not contain the
 * message's id, and they are registered before they are stored.
 */
function parseOwnerIds(key: string): string[] {
  if (key.startsWith('raw/submitted/')) return [];
  const [, id] = /\/((?:msg|rcp|att)_[0-9a-z]{26})(?:\.eml|\/\d+)?$/.exec(key) ?? [];
  if (id === undefined) return [];
  if (isId('attachment', id)) return [id];
  if (!isId('message', id) && !isId('receipt', id)) return [];
  const bytes = idToBytes(id);
  return key.startsWith('attachments/')
    ? [idFromBytes('receipt', bytes)]
    : [idFromBytes('receipt', bytes), idFromBytes('message', bytes)];
}

/** Returns the ids of existing messages and of receipts that are not yet processed. */
async function findExistingIds(database: Database, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { db } = database;
  const rows = await db
    .selectFrom('messages')
    .select('id')
    .where('id', '=', anyOf(ids))
    .unionAll(
      db
        .selectFrom('inbound_receipts')
        .select('id')
        .where('status', '=', 'received')
        .where('id', '=', anyOf(ids)),
    )
    .execute();
  return new Set(rows.map(({ id }) => id));
}

async function registerKeys(database: Database, keys: string[]): Promise<number> {
  if (keys.length === 0) return 0;
  const due_at = sql<Date>`now() + ${RECHECK_DELAY}::interval`;
  const { numInsertedOrUpdatedRows = 0n } = await database.db
    .insertInto('unclaimed_objects')
    .values(keys.map((storage_key) => ({ storage_key, org_id: null, due_at })))
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not count the inserted rows'));
  return Number(numInsertedOrUpdatedRows);
}
