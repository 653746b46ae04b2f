import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId } from '../../platform/database/columns.ts';

/** One change by staff, in the service's own log. It outlives the organization, so it has only ids. Never changed. */
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
    /** Whose log has the same entry; null if the change concerns no single organization. */
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
