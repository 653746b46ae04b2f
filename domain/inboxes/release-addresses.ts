import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { AddressClaimEntity } from './address-claim.entity.ts';

/**
 * Ends the 90-day reservation of the addresses of deleted inboxes on a domain. The next organization that verifies the
 * domain can use them immediately.
 */
export async function releaseAddressesOfDomain(
  em: EntityManager,
  { organizationId, domainName }: { organizationId: string; domainName: string },
): Promise<void> {
  await em.nativeUpdate(
    AddressClaimEntity,
    {
      organizationId,
      email: { $like: `%@${domainName.replace(/[\\%_]/g, '\\$&')}` },
      releasedAt: { $ne: null },
    },
    { releasedAt: new Date(0) },
  );
}

/**
 * Releases the addresses of a purged organization. Those on the shared domain stay reserved for 90 days, so that no other
 * organization receives mail that is meant for this one; those on its own domains are free for the next holder.
 */
export async function releaseAddressesOfOrganization(
  em: EntityManager,
  organizationId: string,
  domainNames: readonly string[],
): Promise<void> {
  await em.execute(sql`
    update address_claims set released_at = now() where org_id = ${organizationId} and released_at is null`);
  for (const domainName of domainNames) await releaseAddressesOfDomain(em, { organizationId, domainName });
}

const PURGE_BATCH_SIZE = 1_000;

/** Sweep: deletes the claims whose reservation has ended. Returns their number. */
export function purgeReleasedAddresses(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from address_claims where email in (
      select email from address_claims where released_at < now() - interval '90 days' limit ${PURGE_BATCH_SIZE})`,
  );
}
