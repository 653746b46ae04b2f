import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { UserEntity } from '../identity/user.entity.ts';
import { OrganizationEntity } from './organization.entity.ts';

export type MemberRole = 'owner' | 'admin' | 'developer' | 'viewer';

/** A user's membership in an organization. */
export const MemberEntity = defineEntity({
  name: 'Member',
  tableName: 'members',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    userId: () => p.manyToOne(UserEntity).mapToPk().primary().deleteRule('cascade'),
    role: p.text().$type<MemberRole>(),
    createdAt: createdAt(),
  },
});

export type Member = InferEntity<typeof MemberEntity>;
