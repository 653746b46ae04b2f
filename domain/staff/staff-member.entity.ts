import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf } from '../../platform/database/columns.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { UserEntity } from '../people/user.entity.ts';
import { STAFF_ROLES, type StaffRole } from './staff-scope.ts';

/** A user who operates the service; no member of the organizations they work on. */
export const StaffMemberEntity = defineEntity({
  name: 'StaffMember',
  tableName: 'staff_members',
  checks: [{ name: 'staff_members_role', expression: oneOf('role', STAFF_ROLES) }],
  triggers: [
    functionTrigger({
      name: 'signal_staff_members_access',
      table: 'staff_members',
      event: 'update',
      when: 'old.role is distinct from new.role',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_staff_members_access_end',
      table: 'staff_members',
      event: 'delete',
      calls: 'signal_access',
    }),
  ],
  properties: {
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').primary().deleteRule('cascade'),
    role: p.text().$type<StaffRole>(),
    /** Staff member who added this one; null for the command `admin:create`. */
    createdBy: idColumn().strictNullable(),
    createdAt: createdAt(),
  },
});

export type StaffMember = InferEntity<typeof StaffMemberEntity>;
