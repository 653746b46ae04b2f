import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { DomainEntity } from './domain.entity.ts';

/** The id of a domain that the organization has verified, locked against deletion until the transaction ends. */
export async function lockVerifiedDomain(
  em: EntityManager,
  organizationId: string,
  domainName: string,
): Promise<string | null> {
  const domain = await em.findOne(
    DomainEntity,
    { organizationId, domainName, verificationStatus: 'verified' },
    { lockMode: LockMode.PESSIMISTIC_READ },
  );
  return domain?.id ?? null;
}
