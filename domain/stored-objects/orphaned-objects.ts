import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import { idFromBytes, idToBytes, isId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';

/** Younger ones may still get their row: a mail may take days to be stored where something is down. */
const MIN_OBJECT_AGE_MS = 7 * 86_400_000;
/** Noted ones are looked at once more when they are due. */
const RECHECK_DELAY = '1 day';
/** A page is followed by a pause as long as it took. */
const MAX_PAUSE_MS = 10_000;

/** Objects of mail; whatever else is in the bucket is somebody else's. */
const PREFIXES = ['attachments/', 'raw/'] as const;

export interface OrphanSearchProgress {
  /** The last key looked at; empty at the beginning. */
  lastKey: string;
  scanned: number;
  /** Objects that were written down as having nobody. */
  registered: number;
}

export interface OrphanSearchOptions {
  database: Database;
  storage: Pick<Storage, 'listPage'>;
  now?: () => Date;
  pause?: (ms: number) => Promise<unknown>;
}

/**
 * Looks through the bucket, a page at a time, for objects that neither a row nor an entry of `unclaimed_objects` knows:
 * a listener was killed while a mail came in, a mail could be stored only without its files, a backup was restored.
 * Notes them, so that the sweep of storage looks at them and deletes them.
 *
 * @param from where a search before this one ended.
 * @param progressed called after each page.
 */
export async function registerOrphanedObjects(
  { database, storage, now = () => new Date(), pause = sleep }: OrphanSearchOptions,
  from: OrphanSearchProgress,
  progressed: (soFar: OrphanSearchProgress) => void,
): Promise<OrphanSearchProgress> {
  let soFar = from;
  for (const prefix of PREFIXES) {
    // Prefixes come in the order of their keys.
    for (let isLast = soFar.lastKey > `${prefix}\uffff`; !isLast; ) {
      const startedAt = performance.now();
      const page = await storage.listPage(
        prefix,
        soFar.lastKey.startsWith(prefix) ? soFar.lastKey : undefined,
      );
      const youngest = now().getTime() - MIN_OBJECT_AGE_MS;
      const old = page.objects
        .filter(({ changedAt }) => changedAt.getTime() < youngest)
        .map(({ key }) => key);
      const noted = await registerKeys(database, await findUnreferencedKeys(database, old));
      soFar = {
        lastKey: page.objects.at(-1)?.key ?? soFar.lastKey,
        scanned: soFar.scanned + page.objects.length,
        registered: soFar.registered + noted,
      };
      progressed(soFar);
      isLast = page.isLast || page.objects.length === 0;
      await pause(Math.min(MAX_PAUSE_MS, performance.now() - startedAt));
    }
  }
  return soFar;
}

const placeholders = (values: readonly unknown[]) => values.map(() => '?').join(', ');

/** Of a page's keys those that nothing refers to. */
async function findUnreferencedKeys(database: Database, keys: string[]): Promise<string[]> {
  if (keys.length === 0) return [];
  const known = await database.statement<{ key: string }>(
    `select storage_key as key from attachments where storage_key in (${placeholders(keys)})
     union all select raw_key from inbound_receipts where raw_key in (${placeholders(keys)})
     union all select raw_key from unattributed_reports where raw_key in (${placeholders(keys)})
     union all select storage_key from unclaimed_objects where storage_key in (${placeholders(keys)})`,
    [...keys, ...keys, ...keys, ...keys],
  );
  const knownKeys = new Set(known.map(({ key }) => key));
  const left = keys.filter((key) => !knownKeys.has(key));
  const owners = new Map(left.map((key) => [key, ownerIdsOf(key)]));
  const present = await findExistingIds(database, [...owners.values()].flat());
  // A key that is not named as ours are stays: better an object too many.
  return left.filter((key) => {
    const ids = owners.get(key) ?? [];
    return ids.length > 0 && !ids.some((id) => present.has(id));
  });
}

/**
 * The rows that may speak for an object by its name: the message whose bytes it has, and the receipt it is made of, of
 * which the files are put before there are rows of them. Nobody for what is named otherwise; so are submitted mails,
 * whose messages are called differently, and which are written down before they are put.
 */
function ownerIdsOf(key: string): string[] {
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

/** Of the ids those of messages that are there, and of receipts whose mail is still to be stored. */
async function findExistingIds(database: Database, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await database.statement<{ id: string }>(
    `select id from messages where id in (${placeholders(ids)})
     union all select id from inbound_receipts where status = 'received' and id in (${placeholders(ids)})`,
    [...ids, ...ids],
  );
  return new Set(rows.map(({ id }) => id));
}

async function registerKeys(database: Database, keys: string[]): Promise<number> {
  if (keys.length === 0) return 0;
  const rows = await database.statement(
    `insert into unclaimed_objects (storage_key, org_id, due_at)
     select key, null, now() + interval '${RECHECK_DELAY}' from unnest(array[${placeholders(keys)}]::text[]) key
     on conflict do nothing returning 1`,
    keys,
  );
  return rows.length;
}
