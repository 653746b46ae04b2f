import { type Expression, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

/**
 * Registers objects in a separate transaction before they are stored, so that the sweep finds them if this process
 * crashes.
 *
 * @param graceMs how long they may remain unclaimed.
 */
export function registerObjects(
  database: Database,
  scope: TenantScope,
  storageKeys: string[],
  graceMs: number,
): Promise<void> {
  const dueAt = new Date(Date.now() + graceMs);
  return database.transaction(scope, ({ db }) =>
    insertUnclaimed(db, scope.organizationId, { storageKeys, dueAt }),
  );
}

/** Adds objects that no row refers to. They must not be registered yet. */
export async function insertUnclaimed(
  db: Db,
  organizationId: string,
  { storageKeys, dueAt = new Date() }: { storageKeys: string[]; dueAt?: Date },
): Promise<void> {
  if (storageKeys.length === 0) return;
  await db
    .insertInto('unclaimed_objects')
    .values(storageKeys.map((storage_key) => ({ storage_key, org_id: organizationId, due_at: dueAt })))
    .execute();
}

interface ReleasedObject {
  storage_key: string;
  org_id: string | null;
  due_at: Date;
}

/**
 * Registers the objects of rows that are being deleted, as a part (`with`) of the statement that deletes them:
 * `.with('released', (deleting) => releaseObjects(db, deleting.selectFrom('deleted').select(…)))`.
 *
 * @param rows selects storage key, organization and due time in this order, with distinct keys.
 */
export const releaseObjects = (db: Db, rows: Expression<ReleasedObject>) =>
  db
    .insertInto('unclaimed_objects')
    .columns(['storage_key', 'org_id', 'due_at'])
    .expression(rows)
    .onConflict((conflict) =>
      conflict.column('storage_key').doUpdateSet((eb) => ({ due_at: eb.ref('excluded.due_at') })),
    );

/** Makes a registered object due immediately. */
export async function expediteDeletion(db: Db, storageKey: string): Promise<void> {
  await db
    .updateTable('unclaimed_objects')
    .set({ due_at: DUE_NOW })
    .where('storage_key', '=', storageKey)
    .execute();
}

/** Makes the registered objects of a query for storage keys due immediately. */
export async function expediteDeletions(
  db: Db,
  keys: Expression<{ storage_key: string | null }>,
): Promise<void> {
  await db
    .updateTable('unclaimed_objects')
    .set({ due_at: DUE_NOW })
    .where('due_at', '>', sql<Date>`now()`)
    .where(sql<boolean>`storage_key in ${keys}`)
    .execute();
}

/**
 * Deletes the entries of objects that a row refers to once this transaction commits.
 *
 * @throws AppError `unavailable` if the request took so long that the objects are already being deleted.
 */
export async function claimObjects(db: Db, storageKeys: string[]): Promise<void> {
  if (storageKeys.length === 0) return;
  const { numDeletedRows } = await db
    .deleteFrom('unclaimed_objects')
    .where('storage_key', '=', anyOf(storageKeys))
    .where('deleting', '=', false)
    .executeTakeFirst();
  if (Number(numDeletedRows) === storageKeys.length) return;
  throw new AppError('unavailable', {
    detail: 'Storing the files took too long.',
    fix: 'Retry the request.',
  });
}

/** Makes an object due for deletion because it is no longer referenced by any row. */
export async function releaseObject(
  db: Db,
  {
    organizationId,
    storageKey,
    dueAt = new Date(),
  }: { organizationId: string; storageKey: string; dueAt?: Date },
): Promise<void> {
  const entry = { org_id: organizationId, due_at: dueAt, deleting: false };
  await db
    .insertInto('unclaimed_objects')
    .values({ storage_key: storageKey, ...entry })
    .onConflict((conflict) => conflict.column('storage_key').doUpdateSet(entry))
    .execute();
}
