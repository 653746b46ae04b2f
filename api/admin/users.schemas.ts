import { type Static, Type } from 'typebox';
import {
  ACCOUNT_STATUSES,
  MAX_LISTED,
  type UserDetails,
  type UserSummary,
} from '../../domain/administration/find-users.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import { STAFF_ROLES, type StaffRole } from '../../domain/staff/staff-scope.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const summary = {
  id: id('User id (usr_…).'),
  email: text(320),
  name: nullableText(320),
  status: enumOf(ACCOUNT_STATUSES, {
    description: 'suspended: by staff. deleted: by the person, for 30 days.',
  }),
  email_verified: Type.Boolean(),
  mfa_enabled: Type.Boolean(),
  organization_count: Type.Integer({ minimum: 0 }),
  staff_role: Type.Unsafe<StaffRole | null>({
    type: ['string', 'null'],
    enum: [...STAFF_ROLES, null],
    description: 'Null unless the person is staff of the service.',
  }),
  last_seen_at: nullableTimestamp('Null for a person without sessions.'),
  created_at: timestamp(),
  deleted_at: nullableTimestamp(),
};

export const AdminUserRecord = resource('user', summary, { $id: 'AdminUser', title: 'AdminUser' });

export const AdminUserDetails = resource(
  'user',
  {
    ...summary,
    organizations: Type.Array(
      strictObject({
        org_id: text(128),
        name: text(320),
        role: enumOf(MEMBER_ROLES),
        created_at: timestamp('When the person joined.'),
      }),
      { maxItems: MAX_LISTED },
    ),
    sessions: Type.Array(
      resource('session', {
        id: text(128),
        kind: text(20, { description: 'enroll: may only enroll a second factor.' }),
        method: text(40),
        factors: Type.Array(text(40), { maxItems: 10 }),
        ip: text(64),
        user_agent: nullableText(1_000),
        created_at: timestamp(),
        last_seen_at: timestamp(),
        expires_at: timestamp(),
      }),
      { maxItems: MAX_LISTED, description: 'Active sessions.' },
    ),
    factors: Type.Array(
      resource('mfa_enrollment', {
        id: text(128),
        type: text(40),
        name: text(320),
        created_at: timestamp(),
        last_used_at: nullableTimestamp(),
      }),
      { maxItems: MAX_LISTED },
    ),
  },
  { $id: 'AdminUserDetails', title: 'AdminUserDetails' },
);

export function presentAdminUser(user: UserSummary): Static<typeof AdminUserRecord> {
  return {
    object: 'user',
    id: user.id,
    email: user.email,
    name: user.name,
    status: user.status,
    email_verified: user.emailVerifiedAt !== null,
    mfa_enabled: user.factorCount > 0,
    organization_count: user.membershipCount,
    staff_role: user.staffRole,
    last_seen_at: user.lastSeenAt?.toISOString() ?? null,
    created_at: user.createdAt.toISOString(),
    deleted_at: user.deletedAt?.toISOString() ?? null,
  };
}

export function presentAdminUserDetails(user: UserDetails): Static<typeof AdminUserDetails> {
  return {
    ...presentAdminUser(user),
    organizations: user.memberships.map(({ organizationId, organizationName, role, createdAt }) => ({
      org_id: organizationId,
      name: organizationName,
      role,
      created_at: createdAt.toISOString(),
    })),
    sessions: user.sessions.map((session) => ({
      object: 'session',
      id: session.id,
      kind: session.kind,
      method: session.method,
      factors: session.factors,
      ip: session.ip,
      user_agent: session.userAgent,
      created_at: session.createdAt.toISOString(),
      last_seen_at: session.lastSeenAt.toISOString(),
      expires_at: session.expiresAt.toISOString(),
    })),
    factors: user.factors.map((factor) => ({
      object: 'mfa_enrollment',
      id: factor.id,
      type: factor.type,
      name: factor.name,
      created_at: factor.createdAt.toISOString(),
      last_used_at: factor.lastUsedAt?.toISOString() ?? null,
    })),
  };
}
