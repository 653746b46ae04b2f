import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { isId } from '../../platform/ids.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { SsoRole, SsoStatus, SsoType } from './sso-configuration.entity.ts';

/** A configuration as a login needs it, with its secret. */
export interface SsoSettings {
  id: string;
  organizationId: string;
  organizationName: string;
  type: SsoType;
  status: SsoStatus;
  version: number;
  /** Names this service to the identity provider: the id of the configuration, or of the one that a draft replaces. */
  serviceProviderId: string;
  domains: string[];
  defaultRole: SsoRole;
  issuer: string | null;
  clientId: string | null;
  clientSecret: string | null;
  idpMetadataXml: string | null;
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
      coalesce(c.replaces_id, c.id) as "serviceProviderId", c.domains, c.default_role as "defaultRole", c.issuer,
      c.client_id as "clientId", c.client_secret as "sealedSecret", c.idp_metadata_xml as "idpMetadataXml",
      c.allow_idp_initiated as "allowIdpInitiated"
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

/** @param organization id or slug. */
export function findActiveSettings(
  em: EntityManager,
  secretBox: SecretBox,
  organization: string,
): Promise<SsoSettings | undefined> {
  const isNamed = isId('organization', organization)
    ? sql`o.id = ${organization}`
    : sql`o.slug = ${organization}`;
  return findSettings(em, secretBox, sql`${isNamed} and c.status = 'active'`);
}
