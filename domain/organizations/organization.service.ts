import type { FilterQuery } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { type Environment, EnvironmentEntity } from './environment.entity.ts';
import { type Organization, OrganizationEntity } from './organization.entity.ts';

export interface OrganizationService {
  /** Returns the caller's organization. */
  get(scope: Scope): Promise<Organization>;
  /** Lists the environments the credential may use: the one it is bound to, or all of the organization. */
  listEnvironments(scope: Scope, page: PageRequest): Promise<Page<Environment>>;
}

export function createOrganizationService({ database }: { database: Database }): OrganizationService {
  return {
    get: (scope) =>
      database.transaction(scope, ({ em }) =>
        em.findOneOrFail(OrganizationEntity, { id: scope.organizationId }),
      ),

    listEnvironments: (scope, page) =>
      database.read(scope, (reader) => {
        const where: FilterQuery<Environment>[] = [{ organizationId: scope.organizationId }];
        if (scope.environmentBound) where.push({ id: scope.environmentId });
        return findPage(reader, EnvironmentEntity, { where, page });
      }),
  };
}
