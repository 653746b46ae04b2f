import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { releaseObjectsSql } from '../stored-objects/unclaimed-objects.ts';

/**
 * Deletes the exports of a purged organization: aborts unfinished uploads and releases the archives. Returns the number of
 * deleted exports.
 */
export async function purgeExports(
  { database, storage }: { database: Database; storage: Pick<Storage, 'multipartUploads'> },
  organizationId: string,
): Promise<number> {
  const uploads = await database.query<{ storageKey: string; uploadId: string }>(sql`
    select storage_key as "storageKey", upload_id as "uploadId" from exports
    where org_id = ${organizationId} and upload_id is not null`);
  for (const { storageKey, uploadId } of uploads) await storage.multipartUploads.abort(storageKey, uploadId);
  const [row] = await database.query<{ count: number }>(sql`
    with deleted as (delete from exports where org_id = ${organizationId} returning storage_key, org_id),
      released as (${releaseObjectsSql(sql`select distinct storage_key, org_id, now() from deleted`)})
    select count(*)::int as count from deleted`);
  return row?.count ?? 0;
}
