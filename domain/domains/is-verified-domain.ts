import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** Whether the organization has verified the domain itself; its parent does not count. At most one organization has. */
export async function isVerifiedDomain(
  em: EntityManager,
  organizationId: string,
  domainName: string,
): Promise<boolean> {
  const rows = await em.execute<object[]>(sql`
    select from domains
    where org_id = ${organizationId} and domain_name = ${domainName} and verification_status = 'verified'`);
  return rows.length > 0;
}
