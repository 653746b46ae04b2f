import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { releaseObjects } from '../stored-objects/unclaimed-objects.ts';
import type { AcceptedMail } from './inbound-routes.ts';

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

/**
 * Deletes reports after 30 days, and all but the newest 1,000. The next sweep deletes their bytes. Returns the number of
 * deleted reports.
 */
export async function deleteExpiredReports({ db }: Pick<Database, 'db'>): Promise<number> {
  const ranked = db
    .selectFrom('unattributed_reports')
    .select([
      'id',
      'received_at',
      sql<number>`row_number() over (order by received_at desc, id desc)`.as('place'),
    ]);
  const expired = db
    .selectFrom(ranked.as('ranked'))
    .select('ranked.id')
    .where((eb) =>
      eb.or([
        eb('ranked.place', '>', MAX_RETAINED),
        eb('ranked.received_at', '<', sql<Date>`now() - ${RETENTION_DAYS} * interval '1 day'`),
      ]),
    )
    .limit(BATCH_SIZE);
  const deleted = await db
    .with('deleted', (deleting) =>
      deleting.deleteFrom('unattributed_reports').where('id', 'in', expired).returning('raw_key'),
    )
    .with('released', (deleting) =>
      releaseObjects(
        db,
        deleting
          .selectFrom('deleted')
          .select([
            'raw_key as storage_key',
            sql<string | null>`null::text`.as('org_id'),
            DUE_NOW.as('due_at'),
          ]),
      ),
    )
    .selectFrom('deleted')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return deleted?.count ?? 0;
}
