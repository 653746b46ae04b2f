import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export type AuditActorKind = 'user' | 'api_key' | 'connection' | 'staff' | 'system';

/**
 * One change that matters for security or administration: who made it, from where, with which credential. Rows never change.
 */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  policies: tenantPolicies({ people: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['organizationId', 'actorId', 'id'] },
    { properties: ['organizationId', 'resourceId', 'id'] },
    { properties: ['organizationId', 'resourceType', 'id'] },
    { properties: ['organizationId', 'action', 'id'] },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** `<resource>.<past participle>`, for example `api_key.created`. */
    action: p.text(),
    actorKind: p.text().$type<AuditActorKind>(),
    /** Id of the user, key or staff member; of the workflow's resource for `system`. */
    actorId: p.text(),
    /** Session or key that made the request; null for workflows. */
    credentialId: idColumn().strictNullable(),
    resourceType: p.text(),
    resourceId: p.text(),
    /** Reason, if the operation requires one. */
    reason: p.text().strictNullable(),
    /** What changed; never a secret or content of mail. */
    details: json(p.json().$type<Record<string, unknown>>()),
    /** Null for workflows. */
    ip: p.text().strictNullable(),
    requestId: p.text().strictNullable(),
    createdAt: createdAt(),
  },
});

export type AuditEntry = InferEntity<typeof AuditEntryEntity>;
