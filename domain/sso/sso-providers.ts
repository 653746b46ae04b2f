import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { findRows } from '../../platform/database/find-rows.ts';
import { newId } from '../../platform/ids.ts';
import type { SsoConfiguration } from './sso-configuration.entity.ts';
import { SsoProviderEntity } from './sso-identity.entity.ts';

/** Settings that say who the identity provider is. */
export interface ProviderClaim extends Pick<SsoConfiguration, 'organizationId' | 'type'> {
  issuer: string;
  /** SAML: fingerprints of the certificates in its metadata. */
  certificates: readonly string[];
}

/**
 * Finds the identity provider of settings among those that know people of the organization. With OpenID Connect the issuer
 * decides, because discovery proves it. A SAML issuer is a name that anyone may state: the metadata must also carry a certificate
 * of that identity provider.
 *
 * @param preferred the one of the configuration that is changed.
 */
export async function findProvider(
  em: RowReader,
  { organizationId, type, issuer, certificates }: ProviderClaim,
  preferred: string | null,
): Promise<string | undefined> {
  const known = await findRows(em, SsoProviderEntity, {
    where: { organizationId, type },
    orderBy: { createdAt: 'desc', id: 'desc' },
  });
  const same = known.filter((provider) =>
    type === 'oidc'
      ? normalizeIssuer(provider.issuer) === normalizeIssuer(issuer)
      : provider.issuer === issuer && provider.certificates.some((one) => certificates.includes(one)),
  );
  return (same.find(({ id }) => id === preferred) ?? same[0])?.id;
}

/** {@link findProvider}, or a new one, which knows no person yet. */
export async function adoptProvider(
  em: EntityManager,
  claim: ProviderClaim,
  preferred: string | null,
): Promise<string> {
  const found = await findProvider(em, claim, preferred);
  const id = found ?? newId('ssoProvider');
  const certificates = `{${claim.certificates.join(',')}}`;
  await em.execute(sql`
    insert into sso_providers (id, org_id, type, issuer, certificates, created_at)
    values (${id}, ${claim.organizationId}, ${claim.type}, ${claim.issuer}, ${certificates}::text[], now())
    on conflict (id) do update set certificates = excluded.certificates`);
  return id;
}

/** URLs that mean the same are one issuer: with and without the slash after a host. */
const normalizeIssuer = (issuer: string): string => URL.parse(issuer)?.href ?? issuer;

/** Whether an owner signs in through the identity provider. */
export async function isOwnersProvider(
  em: EntityManager,
  organizationId: string,
  providerId: string | undefined,
): Promise<boolean> {
  if (providerId === undefined) return false;
  const linked = await em.execute<object[]>(sql`
    select from sso_identities i
    join members m on m.org_id = i.org_id and m.user_id = i.user_id and m.role = 'owner'
    where i.org_id = ${organizationId} and i.provider_id = ${providerId} limit 1`);
  return linked.length > 0;
}

/**
 * Counts, for each replaced configuration, the members whom its identity provider knows and that of the active configuration does
 * not: they have to link once.
 */
export async function countUnlinked(reader: RowReader, organizationId: string): Promise<Map<string, number>> {
  const rows = await reader.execute<{ id: string; count: number }[]>(sql`
    select c.id, count(distinct m.user_id)::integer as count
    from sso_configurations c
    left join sso_identities i on i.provider_id = c.provider_id and not exists (
      select from sso_configurations a join sso_identities n on n.provider_id = a.provider_id
      where a.org_id = c.org_id and a.status = 'active' and n.user_id = i.user_id)
    left join members m on m.org_id = c.org_id and m.user_id = i.user_id
    where c.org_id = ${organizationId} and c.replaced_at is not null
    group by c.id`);
  return new Map(rows.map(({ id, count }) => [id, count]));
}
