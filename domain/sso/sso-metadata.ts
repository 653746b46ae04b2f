import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { Sql } from '../../platform/database/sql.ts';
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
 * Reads the metadata of SAML identity providers from their URLs again, daily, because their certificates change. Metadata
 * of another identity provider, and metadata that cannot be used, change nothing. Returns the number of changed rows.
 */
export async function refreshSsoMetadata({
  database,
  metadataSource,
  parseMetadata,
  logger,
}: MetadataRefreshOptions): Promise<number> {
  // Claimed before the requests, so that each is made once a day, or once an hour after a failure.
  const due = await database.query<{ id: string; url: string }>(sql`
    update sso_configurations set metadata_due_at = now() + interval '1 hour' where id = any(array(
      select id from sso_configurations where metadata_due_at <= now() order by metadata_due_at
      limit ${MAX_PER_RUN} for update skip locked))
    returning id, idp_metadata_url as url`);
  const changed = await Promise.all(
    due.map(async ({ id, url }) => {
      const read = async () => {
        const xml = await metadataSource.read(url);
        return updateMetadata({ id, url, xml, metadata: parseMetadata(xml) });
      };
      const update = await read().catch((error: unknown) => {
        logger.warn({ configurationId: id, err: error }, 'could not read SAML metadata again');
        return undefined;
      });
      if (!update) return 0;
      const rows = await database.query<object>(update);
      return rows.length;
    }),
  );
  return changed.reduce((sum, count) => sum + count, 0);
}

/**
 * The statement that stores metadata which was read from its URL again, unless the configuration has another URL or issuer meanwhile.
 * The identity provider goes by its new certificates then.
 */
export function updateMetadata({
  id,
  url,
  xml,
  metadata: { entityId, certificates, certificateExpiresAt },
}: {
  id: string;
  url: string;
  xml: string;
  metadata: IdpMetadata;
}): Sql {
  return sql`
    with changed as (
      update sso_configurations set idp_metadata_xml = ${xml}, metadata_fetched_at = now(),
        metadata_due_at = now() + interval '1 day', certificate_expires_at = ${certificateExpiresAt},
        certificate_warned_days = case
          when certificate_expires_at = ${certificateExpiresAt} then certificate_warned_days end
      where id = ${id} and idp_metadata_url = ${url} and issuer = ${entityId}
      returning id, provider_id, status = 'active' or replaced_at is not null as "signsIn"),
    known as (
      update sso_providers p set certificates = ${`{${certificates.map(fingerprintOf).join(',')}}`}::text[]
      from changed where p.id = changed.provider_id and changed."signsIn")
    select id from changed`;
}

const WARNING_DAYS = [30, 7] as const;

/** Informs owners 30 and 7 days before the last certificate of their identity provider ends. Returns the number of emails' occasions. */
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
      const ending = await transaction.em.execute<
        { id: string; organizationId: string; name: string; endsAt: string }[]
      >(sql`
        update sso_configurations set certificate_warned_days = ${days}
        where status = 'active' and certificate_expires_at < now() + ${days} * interval '1 day'
          and coalesce(certificate_warned_days, 1000) > ${days}
        returning id, org_id as "organizationId", name, certificate_expires_at as "endsAt"`);
      for (const { id, organizationId, name, endsAt } of ending) {
        const at = new Date(endsAt);
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'sso-certificate-ends',
          params: { organizationId, configurationId: id, name, endsAt: formatUtc(at) },
          dedupeKey: `sso-certificate/${id}/${at.toISOString()}/${days}`,
        });
      }
      return ending.length;
    });
  return warned;
}
