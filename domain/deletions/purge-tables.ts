import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';

interface PurgedTable {
  table: keyof Tables;
  /** Condition for the rows of the organization, which uses an index if the table has one. */
  where: (organizationId: string) => RawBuilder<SqlBool>;
}

const inOrganization = (organizationId: string) => sql<SqlBool>`org_id = ${organizationId}`;
const inEnvironments = (organizationId: string) =>
  sql<SqlBool>`env_id in (select id from environments where org_id = ${organizationId})`;
const inInboxes = (organizationId: string) =>
  sql<SqlBool>`inbox_id in (select id from inboxes where ${inEnvironments(organizationId)})`;

/**
 * Tables whose rows are deleted in batches, in this order: rows before those to which they refer. Child rows (attempts of a
 * delivery, recipients and search entry of a message) are deleted with them. Messages, receipts and exports have their own
 * statements, because they own stored objects.
 *
 * All other tables of an organization are small. The foreign key deletes their rows with its row.
 */
export const TABLES_BEFORE_MESSAGES: readonly PurgedTable[] = [
  {
    table: 'webhook_deliveries',
    where: (id) => sql<SqlBool>`endpoint_id in (select id from webhook_endpoints where org_id = ${id})`,
  },
  { table: 'events', where: inEnvironments },
];
export const TABLES_AFTER_MESSAGES: readonly PurgedTable[] = [
  { table: 'drafts', where: inInboxes },
  // Uploads. All other attachments were deleted with their message or draft.
  {
    table: 'attachments',
    where: (id) => sql<SqlBool>`message_id is null and draft_id is null and org_id = ${id}`,
  },
  { table: 'threads', where: inEnvironments },
  { table: 'reputation_outcomes', where: inInboxes },
  { table: 'api_requests', where: inOrganization },
  { table: 'metric_hours', where: inEnvironments },
  { table: 'usage_hours', where: inOrganization },
  { table: 'usage_events', where: inOrganization },
  { table: 'notifications', where: inOrganization },
  { table: 'audit_entries', where: inOrganization },
  { table: 'suppressions', where: inOrganization },
  { table: 'list_entries', where: inOrganization },
  { table: 'inboxes', where: inEnvironments },
];
/**
 * Emptied before the row of the organization is locked, too. What moves deltas into counters locks the deltas first, then the
 * organization, by the foreign key of the counters; the opposite order would be a deadlock.
 */
export const DELTA_TABLES: readonly PurgedTable[] = [
  { table: 'metric_deltas', where: inEnvironments },
  { table: 'usage_deltas', where: inOrganization },
];
/** Tables without a foreign key to the organization, emptied in the transaction that deletes its row. */
export const TABLES_WITH_ORGANIZATION: readonly PurgedTable[] = [
  { table: 'metric_deltas', where: inEnvironments },
  { table: 'organizations', where: (id) => sql<SqlBool>`id = ${id}` },
  // After the attachments, whose deletion adds deltas.
  { table: 'usage_deltas', where: inOrganization },
  { table: 'api_requests', where: inOrganization },
  { table: 'idempotency_keys', where: inOrganization },
  { table: 'outbox', where: inOrganization },
];

/** Deletes at most `batchSize` rows. Returns their number. */
export async function deleteBatch(
  database: Database,
  { table, where }: PurgedTable,
  { organizationId, batchSize }: { organizationId: string; batchSize: number },
): Promise<number> {
  const { numDeletedRows } = await database.db
    .deleteFrom(table)
    .where(
      sql<SqlBool>`ctid = any(array(
        select ctid from ${sql.table(table)} where ${where(organizationId)} limit ${batchSize}))`,
    )
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer a deletion'));
  return Number(numDeletedRows);
}

/** Deletes all rows of the organization. */
export async function deleteAll(
  db: Db,
  { table, where }: PurgedTable,
  organizationId: string,
): Promise<void> {
  await db.deleteFrom(table).where(where(organizationId)).execute();
}
