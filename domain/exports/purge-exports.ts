import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import {
  CANCEL_EXPORT,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import { expediteDeletions, releaseObjects } from '../stored-objects/unclaimed-objects.ts';
import { UNFINISHED_STATUSES } from './export.entity.ts';

const CANCELED_BY_PURGE = 'It may contain what was purged meanwhile. Start a new export.';

/**
 * Ends the exports of an organization for a purge: archives are no longer available, exports in progress are canceled,
 * and the objects are due for deletion, after which existing links stop working.
 *
 * @param of.madeBefore a time in PostgreSQL's text format.
 */
export async function expireArchives(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  of: { organizationId: string; madeBefore: string },
): Promise<void> {
  const { db } = transaction;
  const { organizationId } = of;
  const madeBefore = sql<Date>`${of.madeBefore}::timestamptz`;
  const now = sql<Date>`now()`;
  await db
    .updateTable('exports')
    .set({ status: 'expired', expires_at: sql`least(expires_at, ${DUE_NOW})`, updated_at: now })
    .where('org_id', '=', organizationId)
    .where('created_at', '<', madeBefore)
    .where('status', '=', 'ready')
    .execute();
  const canceled = await db
    .updateTable('exports')
    .set({ status: 'canceled', status_detail: CANCELED_BY_PURGE, completed_at: now, updated_at: now })
    .where('org_id', '=', organizationId)
    .where('created_at', '<', madeBefore)
    .where('status', 'in', UNFINISHED_STATUSES)
    .returning('id')
    .execute();
  for (const { id } of canceled)
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: exportOrganizationWorkflowId(id), signalName: CANCEL_EXPORT, args: [] },
    });
  await expediteDeletions(
    db,
    db
      .selectFrom('exports')
      .select('storage_key')
      .where('org_id', '=', organizationId)
      .where('created_at', '<', madeBefore),
  );
}

/**
 * Deletes the exports of a purged organization: aborts unfinished uploads and releases the archives. Returns the number of
 * deleted exports.
 */
export async function purgeExports(
  {
    database: { db },
    storage,
  }: { database: Pick<Database, 'db'>; storage: Pick<Storage, 'multipartUploads'> },
  organizationId: string,
): Promise<number> {
  const uploads = await db
    .selectFrom('exports')
    .select(['storage_key as storageKey', 'upload_id as uploadId'])
    .where('org_id', '=', organizationId)
    .where('upload_id', 'is not', null)
    .$narrowType<{ uploadId: string }>()
    .execute();
  for (const { storageKey, uploadId } of uploads) await storage.multipartUploads.abort(storageKey, uploadId);
  const deleted = await db
    .with('deleted', (deleting) =>
      deleting
        .deleteFrom('exports')
        .where('org_id', '=', organizationId)
        .returning(['storage_key', 'org_id']),
    )
    .with('released', (releasing) =>
      releaseObjects(
        db,
        releasing
          .selectFrom('deleted')
          .select(['storage_key', 'org_id', DUE_NOW.as('due_at')])
          .distinct(),
      ),
    )
    .selectFrom('deleted')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return deleted?.count ?? 0;
}
