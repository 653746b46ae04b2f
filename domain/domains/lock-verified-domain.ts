import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { DomainEntity } from './domain.entity.ts';

/** Finds a verified domain of the organization and locks it against deletion until the transaction ends. Returns its id. */
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
