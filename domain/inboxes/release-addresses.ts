import type { EntityManager } from '@mikro-orm/postgresql';
import { AddressClaimEntity } from './address-claim.entity.ts';

/**
 * Ends the 90 days for which the addresses of deleted inboxes of a domain stay reserved: the next organization that
 * verifies the domain may take them at once.
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
