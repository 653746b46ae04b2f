import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, oneOf, primaryId } from '../../platform/database/columns.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { UserEntity } from '../people/user.entity.ts';
import { STAFF_ROLES, type StaffRole } from './staff-scope.ts';

/** A user who operates the service. They need not be a member of the organizations on which they work. */
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

/**
 * One change by staff, in the service's own log. It outlives the organization, so it contains only ids. Rows never change.
 */
export const StaffAuditEntryEntity = defineEntity({
  name: 'StaffAuditEntry',
  tableName: 'staff_audit_entries',
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['staffId', 'id'] },
    { properties: ['resourceId', 'id'] },
    { properties: ['action', 'id'] },
  ],
  properties: {
    id: primaryId(),
    /** User id of the staff member. */
    staffId: idColumn(),
    /** Session that made the request. */
    sessionId: idColumn(),
    /** `<resource>.<past participle>`, for example `organization.suspended`. */
    action: p.text(),
    resourceType: p.text(),
    resourceId: p.text(),
    /** The organization whose log has the same entry; null if the change concerns no single organization. */
    organizationId: idColumn().strictNullable(),
    reason: p.text().strictNullable(),
    /** What changed; never a secret or content of mail. */
    details: json(p.json().$type<Record<string, unknown>>()),
    ip: p.text(),
    requestId: p.text(),
    createdAt: createdAt(),
  },
});

export type StaffAuditEntry = InferEntity<typeof StaffAuditEntryEntity>;
