import { sql } from 'kysely';
import type { Logger } from 'pino';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { MetadataSource } from './metadata-source.ts';
import { fingerprintOf, type IdpMetadata } from './saml/idp-metadata.ts';

export interface MetadataRefreshOptions {
  /** Connected as a worker. */
  database: Database;
  metadataSource: MetadataSource;
  /** @throws MetadataRefusal */
  parseMetadata(xml: string): IdpMetadata;
  logger: Pick<Logger, 'warn'>;
}

const MAX_PER_RUN = 10;

/**
 * Reads the metadata of SAML identity providers from their URLs again, daily, because their certificates change. Metadata of
 * another identity provider and unusable metadata change nothing. Returns the number of changed rows.
 */
export async function refreshSsoMetadata({
  database,
  metadataSource,
  parseMetadata,
  logger,
}: MetadataRefreshOptions): Promise<number> {
  const due = await claimDue(database.db);
  const changed = await Promise.all(
    due.map(async ({ id, url }) => {
      const read = async () => {
        const xml = await metadataSource.read(url);
        return { id, url, xml, metadata: parseMetadata(xml) };
      };
      const found = await read().catch((error: unknown) => {
        logger.warn({ configurationId: id, err: error }, 'could not read SAML metadata again');
        return undefined;
      });
      return found !== undefined && (await storeMetadata(database.db, found));
    }),
  );
  return changed.filter(Boolean).length;
}

/** Claims the rows before the requests, so that each request is made once a day, or once an hour after a failure. */
async function claimDue(db: Db): Promise<{ id: string; url: string }[]> {
  const claimed = await db
    .updateTable('sso_configurations')
    .set({ metadata_due_at: sql<Date>`now() + interval '1 hour'` })
    .where(
      'id',
      '=',
      anyLocked(
        db
          .selectFrom('sso_configurations')
          .select('id')
          .where('metadata_due_at', '<=', sql<Date>`now()`)
          .orderBy('metadata_due_at')
          .limit(MAX_PER_RUN)
          .forUpdate()
          .skipLocked(),
      ),
    )
    .returning(['id', 'idp_metadata_url as url'])
    .execute();
  return claimed.map(({ id, url }) => ({ id, url: url ?? '' }));
}

export interface ReadMetadata {
  /** Of the configuration. */
  id: string;
  url: string;
  xml: string;
  metadata: IdpMetadata;
}

/**
 * Stores metadata that was read from its URL again, unless the URL or issuer of the configuration has changed meanwhile. The
 * identity provider then has the new certificates.
 *
 * @returns whether it was stored.
 */
export async function storeMetadata(
  db: Db,
  { id, url, xml, metadata: { entityId, certificates, certificateExpiresAt } }: ReadMetadata,
): Promise<boolean> {
  const changed = await db
    .with('changed', (query) =>
      query
        .updateTable('sso_configurations')
        .set((eb) => ({
          idp_metadata_xml: xml,
          metadata_fetched_at: sql<Date>`now()`,
          metadata_due_at: sql<Date>`now() + interval '1 day'`,
          certificate_expires_at: certificateExpiresAt,
          certificate_warned_days: eb
            .case()
            .when('certificate_expires_at', '=', certificateExpiresAt)
            .then(eb.ref('certificate_warned_days'))
            .end(),
        }))
        .where('id', '=', id)
        .where('idp_metadata_url', '=', url)
        .where('issuer', '=', entityId)
        .returning([
          'id',
          'provider_id',
          sql<boolean>`status = 'active' or replaced_at is not null`.as('signs_in'),
        ]),
    )
    .with('known', (query) =>
      query
        .updateTable('sso_providers as p')
        .from('changed')
        .set({ certificates: certificates.map(fingerprintOf) })
        .whereRef('p.id', '=', 'changed.provider_id')
        .where('changed.signs_in', '=', true),
    )
    .selectFrom('changed')
    .select('id')
    .execute();
  return changed.length > 0;
}

const WARNING_DAYS = [30, 7] as const;

/**
 * Informs owners 30 and 7 days before the last certificate of their identity provider expires. Returns the number of
 * configurations.
 */
export async function warnOfSsoCertificates({
  database,
  notifications,
}: {
  database: Database;
  notifications: NotificationService;
}): Promise<number> {
  let warned = 0;
  for (const days of WARNING_DAYS)
    warned += await database.systemTransaction(async (transaction) => {
      const ending = await claimEnding(transaction.db, days);
      for (const { id, organizationId, name, endsAt } of ending) {
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'sso-certificate-ends',
          params: { organizationId, configurationId: id, name, endsAt: formatUtc(endsAt) },
          dedupeKey: `sso-certificate/${id}/${endsAt.toISOString()}/${days}`,
        });
      }
      return ending.length;
    });
  return warned;
}

async function claimEnding(
  db: Db,
  days: number,
): Promise<{ id: string; organizationId: string; name: string; endsAt: Date }[]> {
  const ending = await db
    .updateTable('sso_configurations')
    .set({ certificate_warned_days: days })
    .where('status', '=', 'active')
    .where('certificate_expires_at', '<', sql<Date>`now() + ${days} * interval '1 day'`)
    .where((eb) =>
      eb.or([eb('certificate_warned_days', 'is', null), eb('certificate_warned_days', '>', days)]),
    )
    .returning(['id', 'org_id as organizationId', 'name', 'certificate_expires_at as endsAt'])
    .execute();
  return ending.flatMap(({ endsAt, ...each }) => (endsAt === null ? [] : [{ ...each, endsAt }]));
}
