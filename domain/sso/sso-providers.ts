import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { SsoConfiguration } from './sso-configuration.entity.ts';

/** Settings that identify the identity provider. */
export interface ProviderClaim extends Pick<SsoConfiguration, 'organizationId' | 'type'> {
  issuer: string;
  /** SAML: fingerprints of the certificates in its metadata. */
  certificates: readonly string[];
}

/**
 * Finds the identity provider of settings among those that know people of the organization. With OpenID Connect the issuer
 * decides, because discovery proves it. Anyone can state a SAML issuer, so the metadata must also contain a certificate of
 * that identity provider.
 *
 * @param preferred the identity provider of the changed configuration.
 */
export async function findProvider(
  db: Db,
  { organizationId, type, issuer, certificates }: ProviderClaim,
  preferred: string | null,
): Promise<string | undefined> {
  const known = await db
    .selectFrom('sso_providers')
    .select(['id', 'issuer', 'certificates'])
    .where('org_id', '=', organizationId)
    .where('type', '=', type)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  const same = known.filter((provider) =>
    type === 'oidc'
      ? normalizeIssuer(provider.issuer) === normalizeIssuer(issuer)
      : provider.issuer === issuer && provider.certificates.some((one) => certificates.includes(one)),
  );
  return (same.find(({ id }) => id === preferred) ?? same[0])?.id;
}

/** Finds the identity provider as {@link findProvider}, or creates one without people. */
export async function adoptProvider(db: Db, claim: ProviderClaim, preferred: string | null): Promise<string> {
  const found = await findProvider(db, claim, preferred);
  const id = found ?? newId('ssoProvider');
  const certificates = [...claim.certificates];
  await db
    .insertInto('sso_providers')
    .values({ id, org_id: claim.organizationId, type: claim.type, issuer: claim.issuer, certificates })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ certificates }))
    .execute();
  return id;
}

/** Equivalent URLs are one issuer, for example with and without a slash after the host. */
const normalizeIssuer = (issuer: string): string => URL.parse(issuer)?.href ?? issuer;

/** Whether an owner signs in through the identity provider. */
export async function isOwnersProvider(
  db: Db,
  organizationId: string,
  providerId: string | undefined,
): Promise<boolean> {
  if (providerId === undefined) return false;
  const linked = await db
    .selectFrom('sso_identities as i')
    .innerJoin('members as m', (join) =>
      join.onRef('m.org_id', '=', 'i.org_id').onRef('m.user_id', '=', 'i.user_id').on('m.role', '=', 'owner'),
    )
    .select('m.user_id')
    .where('i.org_id', '=', organizationId)
    .where('i.provider_id', '=', providerId)
    .limit(1)
    .executeTakeFirst();
  return linked !== undefined;
}

/**
 * Counts, for each replaced configuration, the members who still have to link: its identity provider knows them, but that of
 * the active configuration does not.
 */
export async function countUnlinked(db: Db, organizationId: string): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('sso_configurations as c')
    .leftJoin('sso_identities as i', (join) =>
      join
        .onRef('i.provider_id', '=', 'c.provider_id')
        .on(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('sso_configurations as a')
                .innerJoin('sso_identities as n', 'n.provider_id', 'a.provider_id')
                .select('n.user_id')
                .whereRef('a.org_id', '=', 'c.org_id')
                .where('a.status', '=', 'active')
                .whereRef('n.user_id', '=', 'i.user_id'),
            ),
          ),
        ),
    )
    .leftJoin('members as m', (join) =>
      join.onRef('m.org_id', '=', 'c.org_id').onRef('m.user_id', '=', 'i.user_id'),
    )
    .select((eb) => ['c.id', eb.fn.count<number>('m.user_id').distinct().as('count')])
    .where('c.org_id', '=', organizationId)
    .where('c.replaced_at', 'is not', null)
    .groupBy('c.id')
    .execute();
  return new Map(rows.map(({ id, count }) => [id, count]));
}
