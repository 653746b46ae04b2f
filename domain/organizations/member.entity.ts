import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { MEMBER_ROLES, type MemberRole } from '../identity/roles.ts';
import { UserEntity } from '../people/user.entity.ts';
import { OrganizationEntity } from './organization.entity.ts';

/** A user's membership in an organization. */
export const MemberEntity = defineEntity({
  name: 'Member',
  tableName: 'members',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  indexes: [{ properties: ['userId'] }],
  checks: [{ name: 'members_role', expression: oneOf('role', MEMBER_ROLES) }],
  triggers: [
    functionTrigger({
      name: 'signal_members_access',
      table: 'members',
      event: 'update',
      when: 'old.role is distinct from new.role',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_members_access_end',
      table: 'members',
      event: 'delete',
      calls: 'signal_access',
    }),
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').primary().deleteRule('cascade'),
    role: p.text().$type<MemberRole>(),
    createdAt: createdAt(),
  },
});

export type Member = InferEntity<typeof MemberEntity>;
