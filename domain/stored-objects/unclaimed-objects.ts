import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { UnclaimedObjectEntity } from './unclaimed-object.entity.ts';

/** Writes down, in its own transaction, what is about to be put: whatever happens to this process, it will be found. */
export function registerObjects(
  database: Database,
  scope: TenantScope,
  storageKeys: string[],
  graceMs: number,
): Promise<void> {
  return database.transaction(scope, async ({ em }) => {
    const dueAt = new Date(Date.now() + graceMs);
    await em.insertMany(
      UnclaimedObjectEntity,
      storageKeys.map((storageKey) => ({
        storageKey,
        organizationId: scope.organizationId,
        dueAt,
        deleting: false,
      })),
    );
  });
}

/**
 * Takes new objects out of the list of those that may have nobody: from this commit on a row refers to them.
 *
 * @throws AppError `unavailable` where the request took so long that they are being deleted.
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
    fix: 'Repeat the request.',
  });
}

/** Gives up an object that no row refers to any more, or that was put in vain. */
export async function releaseObject(
  em: EntityManager,
  organizationId: string,
  storageKey: string,
): Promise<void> {
  await em.upsert(UnclaimedObjectEntity, { storageKey, organizationId, dueAt: new Date(), deleting: false });
}
