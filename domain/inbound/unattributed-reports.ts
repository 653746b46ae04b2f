import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { releaseObjectsSql } from '../stored-objects/unclaimed-objects.ts';
import type { AcceptedMail } from './accepted-mail.ts';

/** A report contains little text and the reported message or its header. */
const MAX_SIZE_BYTES = 1024 * 1024;
const MAX_PER_HOUR = 500;
const MAX_RETAINED = 1_000;
const RETENTION_DAYS = 30;
/** Maximum number of rows per sweep. */
const BATCH_SIZE = 500;

/**
 * Stores a message to the feedback address that cannot be attributed, within a size limit and an hourly limit.
 *
 * @returns whether it was stored. If not, no row refers to its bytes.
 */
export async function storeUnattributedReport(db: Db, mail: AcceptedMail): Promise<boolean> {
  if (mail.sizeBytes > MAX_SIZE_BYTES) return false;
  const since = new Date(mail.receivedAt.getTime() - 3_600_000);
  const recent = await db
    .selectFrom('unattributed_reports')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('received_at', '>', since)
    .executeTakeFirst();
  if ((recent?.count ?? 0) >= MAX_PER_HOUR) return false;
  await db
    .insertInto('unattributed_reports')
    .values({
      id: newId('receipt'),
      raw_key: mail.rawKey,
      size_bytes: mail.sizeBytes,
      mail_from: storableText(mail.mailFrom, 1_000),
      client_ip: mail.clientIp,
      helo: mail.helo === null ? null : storableText(mail.helo, 255),
      received_at: mail.receivedAt,
    })
    .execute();
  return true;
}

/** Deletes reports after 30 days, and all but the newest 1,000. The next sweep deletes their bytes. Returns the number of deleted reports. */
export async function deleteExpiredReports(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const [row] = await em.execute<{ count: number }[]>(
      sql`with deleted as (delete from unattributed_reports where id in (
         select id from (
           select id, received_at, row_number() over (order by received_at desc, id desc) as place
           from unattributed_reports) ranked
         where place > ${MAX_RETAINED} or received_at < now() - ${RETENTION_DAYS} * interval '1 day'
         limit ${BATCH_SIZE}) returning raw_key),
       released as (${releaseObjectsSql(sql`select raw_key, null::text, now() from deleted`)})
       select count(*)::int as count from deleted`,
    );
    return row?.count ?? 0;
  });
}
