import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isVerifiedDomain } from '../domains/verified-domain.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';
import type { SsoScope } from './sso-scope.ts';

/** A configuration with its metadata, which changes need. */
export type StoredConfiguration = RowOf<typeof SsoConfigurationEntity, 'idpMetadataXml'>;
export type NewConfiguration = Omit<StoredConfiguration, 'createdAt' | 'updatedAt'>;
export type ConfigurationChange = Partial<NewConfiguration>;

const WITH_METADATA = columnsOf(SsoConfigurationEntity, { lazy: ['idpMetadataXml'] });

/** @throws AppError `not_found`, also for pending changes. */
export function lockConfiguration(
  db: Db,
  { organizationId }: SsoScope,
  id: string,
): Promise<StoredConfiguration> {
  return db
    .selectFrom('sso_configurations')
    .select(WITH_METADATA)
    .where('id', '=', id)
    .where('org_id', '=', organizationId)
    .where('replaces_id', 'is', null)
    .forUpdate()
    .executeTakeFirstOrThrow(() => notFound('SSO configuration', id));
}

/** Finds the pending changes of a configuration that the caller has locked. */
export function lockPending(
  db: Db,
  { organizationId }: SsoScope,
  id: string,
): Promise<StoredConfiguration | undefined> {
  return db
    .selectFrom('sso_configurations')
    .select(WITH_METADATA)
    .where('org_id', '=', organizationId)
    .where('replaces_id', '=', id)
    .forUpdate()
    .executeTakeFirst();
}

/** Returns whether there were pending changes. */
export async function discardPending(db: Db, { organizationId }: SsoScope, id: string): Promise<boolean> {
  const discarded = await db
    .deleteFrom('sso_configurations')
    .where('org_id', '=', organizationId)
    .where('replaces_id', '=', id)
    .returning('id')
    .executeTakeFirst();
  return discarded !== undefined;
}

export async function insertConfiguration(db: Db, configuration: NewConfiguration): Promise<void> {
  await db.insertInto('sso_configurations').values(toColumns(configuration)).execute();
}

/** Values that the configuration already has change nothing. The caller has locked the configuration. */
export async function changeConfiguration(
  db: Db,
  before: StoredConfiguration,
  change: ConfigurationChange,
): Promise<StoredConfiguration> {
  const after = { ...before, ...change };
  const former: Record<string, unknown> = toColumns(before);
  const changed = Object.entries(toColumns(after)).filter(
    ([column, value]) => !isDeepStrictEqual(value, former[column]),
  );
  if (changed.length === 0) return before;
  await db
    .updateTable('sso_configurations')
    .set({ ...Object.fromEntries(changed), updated_at: sql<Date>`now()` })
    .where('id', '=', before.id)
    .execute();
  return after;
}

const toColumns = (configuration: NewConfiguration) => ({
  id: configuration.id,
  org_id: configuration.organizationId,
  type: configuration.type,
  status: configuration.status,
  name: configuration.name,
  version: configuration.version,
  replaces_id: configuration.replacesId,
  service_provider_id: configuration.serviceProviderId,
  provider_id: configuration.providerId,
  replaced_at: configuration.replacedAt,
  domains: configuration.domains,
  default_role: configuration.defaultRole,
  issuer: configuration.issuer,
  client_id: configuration.clientId,
  client_secret: configuration.clientSecret,
  idp_metadata_url: configuration.idpMetadataUrl,
  idp_metadata_xml: configuration.idpMetadataXml,
  allow_idp_initiated: configuration.allowIdpInitiated,
  keys_read_at: configuration.keysReadAt,
  metadata_fetched_at: configuration.metadataFetchedAt,
  metadata_due_at: configuration.metadataDueAt,
  certificate_expires_at: configuration.certificateExpiresAt,
  certificate_warned_days: configuration.certificateWarnedDays,
  tested_at: configuration.testedAt,
  activated_at: configuration.activatedAt,
});

export function auditConfiguration(
  db: Db,
  scope: SsoScope,
  what: 'created' | 'updated' | 'refreshed' | 'discarded' | 'disabled' | 'activated' | 'deleted',
  resourceId: string,
  details: Record<string, unknown> = {},
): Promise<void> {
  return recordAudit(db, scope, {
    action: `sso_configuration.${what}`,
    resourceType: 'sso_configuration',
    resourceId,
    details: { ...details, ...scope.auditDetails },
  });
}

/** @throws AppError `domain_not_verified`. */
export async function requireVerified(
  db: Db,
  { organizationId }: SsoScope,
  domains: readonly string[],
): Promise<void> {
  for (const domain of domains)
    if (!(await isVerifiedDomain(db, organizationId, domain)))
      throw new AppError('domain_not_verified', {
        detail: `The organization has not verified the domain ${domain}.`,
        fix: 'Verify it (POST /api/v1/domains), or remove it from the configuration.',
      });
}
