import type { EntityManager } from '@mikro-orm/postgresql';
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
