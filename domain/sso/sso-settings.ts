import { sql } from 'kysely';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Db } from '../../platform/database/tables.ts';
import { isId } from '../../platform/ids.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { Scope } from '../identity/scope.ts';
import type { SsoRole, SsoStatus, SsoType } from './sso-configuration.entity.ts';

/** The settings that a login needs, including the secret. */
export interface SsoSettings {
  id: string;
  organizationId: string;
  organizationName: string;
  type: SsoType;
  status: SsoStatus;
  version: number;
  /** Names this service to the identity provider. */
  serviceProviderId: string;
  /** The id that people see. Pending changes have the id of their configuration. */
  shownId: string;
  /** The `SsoProviderEntity` that knows its people; null before the first activation. */
  providerId: string | null;
  /** Another identity provider has replaced it, so it only links. */
  isReplaced: boolean;
  /** When keys or metadata were last read again on demand; null: never. */
  keysReadAt: Date | null;
  domains: string[];
  defaultRole: SsoRole;
  issuer: string | null;
  clientId: string | null;
  clientSecret: string | null;
  idpMetadataXml: string | null;
  idpMetadataUrl: string | null;
  allowIdpInitiated: boolean;
}

export const clientSecretContext = (configurationId: string): string =>
  `sso-client-secret:${configurationId}`;

export const SSO_CLIENT_SECRETS: SealedColumn = {
  table: 'sso_configurations',
  column: 'client_secret',
  key: ['id'],
  context: ({ id }) => clientSecretContext(String(id)),
};

/** For the people role, which sees every organization. */
const selectSettings = (db: Db) =>
  db
    .selectFrom('sso_configurations as c')
    .innerJoin('organizations as o', (join) =>
      join.onRef('o.id', '=', 'c.org_id').on('o.deleted_at', 'is', null),
    )
    .select([
      'c.id',
      'c.org_id as organizationId',
      'o.name as organizationName',
      'c.type',
      'c.status',
      'c.version',
      sql<string>`coalesce(c.service_provider_id, c.id)`.as('serviceProviderId'),
      sql<string>`coalesce(c.replaces_id, c.id)`.as('shownId'),
      'c.provider_id as providerId',
      sql<boolean>`c.replaced_at is not null`.as('isReplaced'),
      'c.keys_read_at as keysReadAt',
      'c.domains',
      'c.default_role as defaultRole',
      'c.issuer',
      'c.client_id as clientId',
      'c.client_secret as sealedSecret',
      'c.idp_metadata_xml as idpMetadataXml',
      'c.idp_metadata_url as idpMetadataUrl',
      'c.allow_idp_initiated as allowIdpInitiated',
    ]);

type SettingsRow = Omit<SsoSettings, 'clientSecret'> & { sealedSecret: Uint8Array | null };

function unseal(secretBox: SecretBox, row: SettingsRow | undefined): SsoSettings | undefined {
  if (!row) return undefined;
  const { sealedSecret, ...settings } = row;
  const clientSecret =
    sealedSecret === null ? null : secretBox.open(sealedSecret, clientSecretContext(settings.id));
  return { ...settings, clientSecret };
}

export async function findSettingsById(
  db: Db,
  secretBox: SecretBox,
  configurationId: string,
): Promise<SsoSettings | undefined> {
  return unseal(secretBox, await selectSettings(db).where('c.id', '=', configurationId).executeTakeFirst());
}

/** Finds the settings that a test of the configuration uses: its pending changes, if there are any. */
export async function findTestedSettings(
  db: Db,
  secretBox: SecretBox,
  configurationId: string,
): Promise<SsoSettings | undefined> {
  const row = await selectSettings(db)
    .where((eb) =>
      eb.or([
        eb('c.replaces_id', '=', configurationId),
        eb.and([eb('c.id', '=', configurationId), eb('c.replaces_id', 'is', null)]),
      ]),
    )
    .orderBy('c.replaces_id', (order) => order.asc().nullsLast())
    .limit(1)
    .executeTakeFirst();
  return unseal(secretBox, row);
}

/** @param organization id, slug, or the address of a person, whose domain decides. */
export async function findActiveSettings(
  db: Db,
  secretBox: SecretBox,
  organization: string,
): Promise<SsoSettings | undefined> {
  const at = organization.lastIndexOf('@');
  const settings = selectSettings(db).where('c.status', '=', 'active');
  const row =
    at === -1
      ? settings.where(isId('organization', organization) ? 'o.id' : 'o.slug', '=', organization)
      : settings.where(hasDomain(organization.slice(at + 1).toLowerCase()));
  return unseal(secretBox, await row.executeTakeFirst());
}

/** A domain is verified by one organization at a time, so at most one active configuration has it. */
const hasDomain = (domain: string) => sql<boolean>`${domain} = any(c.domains) and exists (
  select from domains d
  where d.org_id = c.org_id and d.domain_name = ${domain} and d.verification_status = 'verified')`;

/**
 * Whether the organization's active configuration started the caller's session. Locks the configuration until the
 * transaction ends.
 */
export async function isOwnSsoSession(db: Db, { organizationId, member }: Scope): Promise<boolean> {
  const active = await db
    .selectFrom('sso_configurations')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('status', '=', 'active')
    .forUpdate()
    .executeTakeFirst();
  const { method, ssoConfigurationId } = member?.person ?? {};
  return active !== undefined && method === 'sso' && ssoConfigurationId === active.id;
}
