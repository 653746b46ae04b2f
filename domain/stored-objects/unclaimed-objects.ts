import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { AppError } from '../../platform/errors.ts';
import { UnclaimedObjectEntity } from './unclaimed-object.entity.ts';

/**
 * Registers objects in their own transaction before they are stored, so that the sweep finds them if this process
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
  return database.transaction(scope, ({ em }) =>
    insertUnclaimed(em, scope.organizationId, { storageKeys, dueAt }),
  );
}

/** Adds objects that no row refers to. They must not be registered yet. */
export async function insertUnclaimed(
  em: EntityManager,
  organizationId: string,
  { storageKeys, dueAt = new Date() }: { storageKeys: string[]; dueAt?: Date },
): Promise<void> {
  await em.insertMany(
    UnclaimedObjectEntity,
    storageKeys.map((storageKey) => ({ storageKey, organizationId, dueAt, deleting: false })),
  );
}

/**
 * SQL that registers the objects of rows that are being deleted, for a statement that deletes many rows.
 *
 * @param rows a query for storage key, organization and due time, with distinct keys.
 */
export function releaseObjectsSql(rows: Sql): Sql {
  return sql`insert into unclaimed_objects (storage_key, org_id, due_at) ${rows}
    on conflict (storage_key) do update set due_at = excluded.due_at`;
}

/** Makes a registered object due immediately. */
export async function expediteDeletion(em: EntityManager, storageKey: string): Promise<void> {
  await em.nativeUpdate(UnclaimedObjectEntity, { storageKey }, { dueAt: new Date() });
}

/** Makes the registered objects of a query for storage keys due immediately. */
export async function expediteDeletions(em: EntityManager, keys: Sql): Promise<void> {
  await em.execute(
    sql`update unclaimed_objects set due_at = now() where due_at > now() and storage_key in (${keys})`,
  );
}

/**
 * Deletes the entries of objects that a row refers to once this transaction commits.
 *
 * @throws AppError `unavailable` if the request took so long that the objects are already being deleted.
 */
export async function claimObjects(em: EntityManager, storageKeys: string[]): Promise<void> {
  if (storageKeys.length === 0) return;
  const claimed = await em.nativeDelete(UnclaimedObjectEntity, {
    storageKey: { $in: storageKeys },
    deleting: false,
  });
  if (claimed === storageKeys.length) return;
  throw new AppError('unavailable', {
    detail: 'Storing the files took too long.',
    fix: 'Retry the request.',
  });
}

/** Makes an object due for deletion because it is no longer referenced by any row. */
export async function releaseObject(
  em: EntityManager,
  {
    organizationId,
    storageKey,
    dueAt = new Date(),
  }: { organizationId: string; storageKey: string; dueAt?: Date },
): Promise<void> {
  await em.upsert(UnclaimedObjectEntity, { storageKey, organizationId, dueAt, deleting: false });
}
