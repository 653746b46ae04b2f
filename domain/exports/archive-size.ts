import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type ExportedTable, rowsOf } from './exported-table.ts';
import { EXPORTED_TABLES } from './exported-tables.ts';

/** Estimated size of an export. The data changes while it is written. */
export interface ArchiveEstimate {
  rows: number;
  files: number;
  /** Upper bound of the archive's size. */
  bytes: number;
}

const BYTES_PER_ROW = 1024;

/** Counts under row-level security, in one transaction per table. */
export async function estimateArchive(
  database: Pick<Database, 'readAsTenant'>,
  organizationId: string,
): Promise<ArchiveEstimate> {
  let rows = 0;
  for (const table of EXPORTED_TABLES)
    rows += await database.readAsTenant(organizationId, (db) => countRows(db, table));
  const messages = await database.readAsTenant(organizationId, measureMessages);
  const files = await database.readAsTenant(organizationId, measureAttachments);
  return {
    rows,
    files: messages.count + files.count,
    // A message counts up to three times: the raw file, and its text once or twice in its row.
    bytes: rows * BYTES_PER_ROW + 3 * messages.bytes + files.bytes,
  };
}

/** Uses an index. With row-level security alone, the count would scan the rows of every organization. */
async function countRows(db: Db, { table, sources }: ExportedTable): Promise<number> {
  const [source] = sources;
  const parent =
    source && 'scan' in source ? source.scan.table === table && source.scan.parent : source?.parent;
  const inParents =
    parent && sql<boolean>`${sql.ref(`t.${parent.column}`)} in (select id from ${sql.table(parent.table)})`;
  const row = await db
    .selectFrom(rowsOf(table))
    .select(sql<number>`count(*)`.as('count'))
    .where(inParents || sql<boolean>`true`)
    .executeTakeFirst();
  return row?.count ?? 0;
}

const sizes = [sql<number>`coalesce(sum(size_bytes), 0)::bigint`.as('bytes')] as const;
const NOTHING = { count: 0, bytes: 0 };

async function measureMessages(db: Db) {
  const query = db
    .selectFrom('messages')
    .select(({ fn }) => [fn.count<number>('raw_key').as('count'), ...sizes]);
  return (await query.executeTakeFirst()) ?? NOTHING;
}

async function measureAttachments(db: Db) {
  const query = db
    .selectFrom('attachments')
    .select(({ fn }) => [fn.countAll<number>().as('count'), ...sizes])
    .where((eb) => eb.or([eb('message_id', 'is not', null), eb('draft_id', 'is not', null)]));
  return (await query.executeTakeFirst()) ?? NOTHING;
}

/** S3 allows 10,000 parts. The difference leaves space for data that is added during the export. */
const MAX_PARTS = 8_000;
const MIB_BYTES = 1024 * 1024;

/** Part size in bytes: `minBytes` for up to `MAX_PARTS` parts, else the archive size divided by `MAX_PARTS`. */
export function choosePartSize(archiveBytes: number, minBytes: number): number {
  const needed = archiveBytes / MAX_PARTS;
  return needed <= minBytes ? minBytes : Math.ceil(needed / MIB_BYTES) * MIB_BYTES;
}
