import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
import type { ExportedTable } from './exported-table.ts';
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
  const size: ArchiveEstimate = { rows: 0, files: 0, bytes: 0 };
  const queryTotals = async (statement: Sql) => {
    const [row] = await database.readAsTenant(organizationId, (em) =>
      em.execute<{ count: string; bytes: string }[]>(statement),
    );
    return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
  };
  for (const exported of EXPORTED_TABLES) {
    const { count } = await queryTotals(
      sql`select count(*) as count from ${sql.ref(exported.table)} ${organizationCondition(exported)}`,
    );
    size.rows += count;
    size.bytes += count * BYTES_PER_ROW;
  }
  const messages = await queryTotals(
    sql`select count(raw_key) as count, coalesce(sum(size_bytes::bigint), 0) as bytes from messages`,
  );
  const files = await queryTotals(
    sql`select count(*) as count, coalesce(sum(size_bytes::bigint), 0) as bytes from attachments
     where message_id is not null or draft_id is not null`,
  );
  size.files = messages.count + files.count;
  // A message counts up to three times: the raw file, and its text once or twice in its row.
  size.bytes += 3 * messages.bytes + files.bytes;
  return size;
}

/** Restricts the count to an index: with row-level security alone it would scan the rows of every organization. */
function organizationCondition({ table, sources }: ExportedTable): Sql {
  const [source] = sources;
  const parent =
    source && 'scan' in source ? source.scan.table === table && source.scan.parent : source?.parent;
  return parent ? sql`where ${sql.ref(parent.column)} in (select id from ${sql.ref(parent.table)})` : sql``;
}

/** S3 allows 10,000 parts; the rest is headroom for data added meanwhile. */
const MAX_PARTS = 8_000;
const MIB_BYTES = 1024 * 1024;

/** Part size in bytes: `minBytes` for up to `MAX_PARTS` parts, else the archive size divided by `MAX_PARTS`. */
export function choosePartSize(archiveBytes: number, minBytes: number): number {
  const needed = archiveBytes / MAX_PARTS;
  return needed <= minBytes ? minBytes : Math.ceil(needed / MIB_BYTES) * MIB_BYTES;
}
