import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { MEMBER_ROLES, type MemberRole } from '../identity/roles.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** An invitation to an organization, which the owner of the address accepts with the mailed token. It works once. */
export const InvitationEntity = defineEntity({
  name: 'Invitation',
  tableName: 'invitations',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['organizationId', 'id'] }, { properties: ['organizationId', 'email'] }],
  checks: [{ name: 'invitations_role', expression: oneOf('role', MEMBER_ROLES) }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Lower case. */
    email: p.text(),
    role: p.text().$type<MemberRole>(),
    tokenHash: p.blob().unique(),
    /** The person who invited; null if a key did. */
    invitedByUserId: idColumn().strictNullable(),
    invitedByKeyId: idColumn().strictNullable(),
    expiresAt: timestamp(),
    acceptedAt: timestamp().strictNullable(),
    acceptedByUserId: idColumn().strictNullable(),
    revokedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Invitation = InferEntity<typeof InvitationEntity>;

export const INVITATION_STATUSES = ['pending', 'accepted', 'revoked', 'expired'] as const;
export type InvitationStatus = (typeof INVITATION_STATUSES)[number];

type Course = Pick<Invitation, 'acceptedAt' | 'revokedAt' | 'expiresAt'>;

export function statusOf({ acceptedAt, revokedAt, expiresAt }: Course, now = new Date()): InvitationStatus {
  if (acceptedAt !== null) return 'accepted';
  if (revokedAt !== null) return 'revoked';
  return expiresAt <= now ? 'expired' : 'pending';
}
