import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { isId } from '../../platform/ids.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { OidcSettings } from './oidc-client.ts';
import type { SsoChecks } from './sso-checks.ts';
import type { SsoRole, SsoStatus, SsoType } from './sso-configuration.entity.ts';

/** A configuration as a login needs it, with its secret. */
export interface SsoSettings {
  id: string;
  organizationId: string;
  organizationName: string;
  type: SsoType;
  status: SsoStatus;
  version: number;
  /** Names this service to the identity provider. */
  serviceProviderId: string;
  /** The id that people see: pending changes have that of their configuration. */
  shownId: string;
  /** Who its people are known to; null before the first activation. */
  providerId: string | null;
  /** Another identity provider took its place: it only links. */
  isReplaced: boolean;
  /** When keys or metadata were last read again on demand, in milliseconds; null: never. */
  keysReadAt: string | null;
  domains: string[];
  defaultRole: SsoRole;
  issuer: string | null;
  clientId: string | null;
  clientSecret: string | null;
  idpMetadataXml: string | null;
  idpMetadataUrl: string | null;
  allowIdpInitiated: boolean;
}

type SettingsRow = Omit<SsoSettings, 'clientSecret'> & { sealedSecret: Buffer | null };

export const clientSecretContext = (configurationId: string): string =>
  `sso-client-secret:${configurationId}`;

export const SSO_CLIENT_SECRETS: SealedColumn = {
  table: 'sso_configurations',
  column: 'client_secret',
  key: ['id'],
  context: ({ id }) => clientSecretContext(String(id)),
};

/** Runs as the people role, which sees every organization. */
async function findSettings(
  em: EntityManager,
  secretBox: SecretBox,
  condition: Sql,
): Promise<SsoSettings | undefined> {
  const [row] = await em.execute<SettingsRow[]>(sql`
    select c.id, c.org_id as "organizationId", o.name as "organizationName", c.type, c.status, c.version,
      coalesce(c.service_provider_id, c.id) as "serviceProviderId", coalesce(c.replaces_id, c.id) as "shownId",
      c.provider_id as "providerId", c.replaced_at is not null as "isReplaced", c.keys_read_at as "keysReadAt", c.domains,
      c.default_role as "defaultRole", c.issuer, c.client_id as "clientId", c.client_secret as "sealedSecret",
      c.idp_metadata_xml as "idpMetadataXml", c.idp_metadata_url as "idpMetadataUrl", c.allow_idp_initiated as "allowIdpInitiated"
    from sso_configurations c join organizations o on o.id = c.org_id and o.deleted_at is null
    where ${condition}`);
  if (!row) return undefined;
  const { sealedSecret, ...settings } = row;
  const clientSecret =
    sealedSecret === null ? null : secretBox.open(sealedSecret, clientSecretContext(settings.id));
  return { ...settings, clientSecret };
}

export const findSettingsById = (
  em: EntityManager,
  secretBox: SecretBox,
  configurationId: string,
): Promise<SsoSettings | undefined> => findSettings(em, secretBox, sql`c.id = ${configurationId}`);

/** What a test of a configuration tests: its pending changes, if there are any. */
export const findTestedSettings = (
  em: EntityManager,
  secretBox: SecretBox,
  configurationId: string,
): Promise<SsoSettings | undefined> =>
  findSettings(
    em,
    secretBox,
    sql`(c.replaces_id = ${configurationId} or (c.id = ${configurationId} and c.replaces_id is null))
      order by c.replaces_id nulls last limit 1`,
  );

/** @param organization id or slug, or the address of a person, whose domain decides. */
export function findActiveSettings(
  em: EntityManager,
  secretBox: SecretBox,
  organization: string,
): Promise<SsoSettings | undefined> {
  const at = organization.lastIndexOf('@');
  return findSettings(
    em,
    secretBox,
    at === -1
      ? sql`${isNamed(organization)} and c.status = 'active'`
      : sql`${hasDomain(organization.slice(at + 1).toLowerCase())} and c.status = 'active'`,
  );
}

const isNamed = (organization: string): Sql =>
  isId('organization', organization) ? sql`o.id = ${organization}` : sql`o.slug = ${organization}`;

/** A domain is verified by one organization at a time, so at most one active configuration has it. */
const hasDomain = (domain: string): Sql => sql`
  ${domain} = any(c.domains) and exists (
    select from domains d
    where d.org_id = c.org_id and d.domain_name = ${domain} and d.verification_status = 'verified')`;

/** The settings of a configuration for OpenID Connect. @throws SsoRefusal if one is missing. */
export function oidcSettings(settings: SsoSettings, checks: SsoChecks): OidcSettings {
  const { id, issuer, clientId, clientSecret, keysReadAt } = settings;
  if (issuer === null || clientId === null || clientSecret === null)
    return checks.fail('provider', 'incomplete settings', 'issuer, client_id and client_secret');
  return { configurationId: id, issuer, clientId, clientSecret, keysReadAt };
}
