import { sql } from '@mikro-orm/core';
import { sql as typedSql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  CANCEL_EXPORT,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import { expediteDeletions } from '../stored-objects/unclaimed-objects.ts';

const CANCELED_BY_PURGE = 'It may contain what was purged meanwhile. Start a new export.';

/**
 * Ends what an organization exported before a purge: archives are no longer available, exports in progress are canceled, and
 * the objects are due for deletion, with which links already given stop.
 *
 * @param of.madeBefore a time as text of PostgreSQL.
 */
export async function expireArchives(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { organizationId, madeBefore }: { organizationId: string; madeBefore: string },
): Promise<void> {
  const { em } = transaction;
  await em.execute(sql`
    update exports set status = 'expired', expires_at = least(expires_at, now()), updated_at = now()
    where org_id = ${organizationId} and created_at < ${madeBefore}::timestamptz and status = 'ready'`);
  const canceled = await em.execute<{ id: string }[]>(sql`
    update exports set status = 'canceled', status_detail = ${CANCELED_BY_PURGE}, completed_at = now(), updated_at = now()
    where org_id = ${organizationId} and created_at < ${madeBefore}::timestamptz and status in ('queued', 'running')
    returning id`);
  for (const { id } of canceled)
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: exportOrganizationWorkflowId(id), signalName: CANCEL_EXPORT, args: [] },
    });
  const { db } = transaction;
  await expediteDeletions(
    db,
    db
      .selectFrom('exports')
      .select('storage_key')
      .where('org_id', '=', organizationId)
      .where('created_at', '<', typedSql<Date>`${madeBefore}::timestamptz`),
  );
}
