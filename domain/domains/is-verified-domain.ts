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
