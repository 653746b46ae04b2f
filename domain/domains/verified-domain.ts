import type { Db } from '../../platform/database/tables.ts';

/** Whether the organization has verified the domain itself; its parent does not count. At most one organization has. */
export async function isVerifiedDomain(db: Db, organizationId: string, domainName: string): Promise<boolean> {
  const domain = await db
    .selectFrom('domains')
    .select('org_id')
    .where('org_id', '=', organizationId)
    .where('domain_name', '=', domainName)
    .where('verification_status', '=', 'verified')
    .executeTakeFirst();
  return domain !== undefined;
}

/** Finds a verified domain of the organization and locks it against deletion until the transaction ends. Returns its id. */
export async function lockVerifiedDomain(
  db: Db,
  organizationId: string,
  domainName: string,
): Promise<string | null> {
  const domain = await db
    .selectFrom('domains')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('domain_name', '=', domainName)
    .where('verification_status', '=', 'verified')
    .forShare()
    .executeTakeFirst();
  return domain?.id ?? null;
}
