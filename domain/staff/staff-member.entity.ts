import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf } from '../../platform/database/columns.ts';
import { UserEntity } from '../people/user.entity.ts';
import { STAFF_ROLES, type StaffRole } from './staff-scope.ts';

/** A user who operates the service; no member of the organizations they work on. */
export const StaffMemberEntity = defineEntity({
  name: 'StaffMember',
  tableName: 'staff_members',
  checks: [{ name: 'staff_members_role', expression: oneOf('role', STAFF_ROLES) }],
  properties: {
    userId: () => p.manyToOne(UserEntity).mapToPk().primary().deleteRule('cascade'),
    role: p.text().$type<StaffRole>(),
    /** Staff member who added this one; null for the command `admin:create`. */
    createdBy: idColumn().strictNullable(),
    createdAt: createdAt(),
  },
});

export type StaffMember = InferEntity<typeof StaffMemberEntity>;
