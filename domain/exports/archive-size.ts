import type { Database } from '../../platform/database/database.ts';
import type { ExportedTable } from './exported-table.ts';
import { EXPORTED_TABLES } from './exported-tables.ts';

/** What there is to be exported, about: it changes meanwhile. */
export interface OrganizationSize {
  rows: number;
  files: number;
  /** No archive of it is longer. */
  bytes: number;
}

const BYTES_A_ROW = 1024;

/** Counts under row-level security, a table a transaction. */
export async function measureOrganization(
  database: Pick<Database, 'readAsTenant'>,
  organizationId: string,
): Promise<OrganizationSize> {
  const size: OrganizationSize = { rows: 0, files: 0, bytes: 0 };
  const one = async (sql: string) => {
    const [row] = await database.readAsTenant(organizationId, (em) =>
      em.execute<{ count: string; bytes: string }[]>(sql),
    );
    return { count: Number(row?.count ?? 0), bytes: Number(row?.bytes ?? 0) };
  };
  for (const exported of EXPORTED_TABLES) {
    const { count } = await one(
      `select count(*) as count from "${exported.table}" ${ofOrganization(exported)}`,
    );
    size.rows += count;
    size.bytes += count * BYTES_A_ROW;
  }
  const mails = await one(
    `select count(raw_key) as count, coalesce(sum(size_bytes::bigint), 0) as bytes from messages`,
  );
  const files = await one(
    `select count(*) as count, coalesce(sum(size_bytes::bigint), 0) as bytes from attachments
     where message_id is not null or draft_id is not null`,
  );
  size.files = mails.count + files.count;
  // A mail is there as it was, and its text in its row once or twice more.
  size.bytes += 3 * mails.bytes + files.bytes;
  return size;
}

/** By an index that leads through them: row-level security alone would look at the rows of every organization. */
function ofOrganization({ table, sources }: ExportedTable): string {
  const [source] = sources;
  const within =
    source && 'walk' in source ? source.walk.table === table && source.walk.within : source?.within;
  return within ? `where "${within.column}" in (select id from "${within.table}")` : '';
}

/** S3 takes 10,000 parts; some are left for what comes meanwhile. */
const PARTS = 8_000;
const MEBIBYTE = 1024 * 1024;

/** Bytes of each part: the least, up to 39 GiB; beyond, an eight-thousandth of the archive. */
export function partSizeFor(archiveBytes: number, minBytes: number): number {
  const needed = archiveBytes / PARTS;
  return needed <= minBytes ? minBytes : Math.ceil(needed / MEBIBYTE) * MEBIBYTE;
}
