import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { isAddressAllowed } from '../identity/allowed-addresses.ts';
import type { MemberRole } from '../identity/roles.ts';
import { requireOrganizationWide, requirePermission, type Scope } from '../identity/scope.ts';
import { findPolicies, type Policies } from '../policies/find-policies.ts';
import { requireValidRanges } from '../policies/policy.service.ts';

/** The policies that decide who gets in. */
export type AccessPolicies = Pick<Policies, 'requireMfa' | 'enforceSso' | 'ssoSatisfiesMfa' | 'allowedCidrs'>;
export const ACCESS_POLICIES = ['require_mfa', 'enforce_sso', 'allowed_cidrs'] as const;

/** What a policy means for a member. */
export interface PolicyEffect {
  userId: string;
  email: string;
  role: MemberRole;
  policy: (typeof ACCESS_POLICIES)[number];
  /** False if the member can do something about it. */
  isLockedOut: boolean;
  /** One sentence about the member. */
  effect: string;
}

export interface PolicyPreview {
  effects: PolicyEffect[];
  /** False for an organization with more members than are examined. */
  isComplete: boolean;
}

export type PolicyPreviewService = ReturnType<typeof createPolicyPreviewService>;

export const MAX_PREVIEWED_MEMBERS = 1_000;

interface MemberFacts {
  userId: string;
  email: string;
  role: MemberRole;
  hasPassword: boolean;
  hasFactor: boolean;
  hasPasskey: boolean;
  /** Has signed in through the active SSO configuration. */
  isLinked: boolean;
  /** The domain of the address is one of the active SSO configuration. */
  isInDomain: boolean;
  /** Client address of the newest session; null without one. */
  lastIp: string | null;
}

export function createPolicyPreviewService({ database }: { database: Database }) {
  return {
    /**
     * Finds the members who would no longer get in the way they do now. Changes nothing.
     *
     * @param change omitted policies keep their present value.
     * @throws AppError `validation_error` for a malformed range; `permission_denied` without `members:read`.
     */
    preview(scope: Scope, change: Partial<AccessPolicies>): Promise<PolicyPreview> {
      requireOrganizationWide(scope);
      requirePermission(scope, 'members:read');
      requireValidRanges(change.allowedCidrs);
      const { organizationId } = scope;
      return database.peopleTransaction(async ({ db }) => {
        const policies = { ...(await findPolicies(db, organizationId)), ...change };
        const members = await readMembers(db, organizationId);
        return {
          effects: members.slice(0, MAX_PREVIEWED_MEMBERS).flatMap((member) => findEffects(member, policies)),
          isComplete: members.length <= MAX_PREVIEWED_MEMBERS,
        };
      });
    },
  };
}

function readMembers(db: Db, organizationId: string): Promise<MemberFacts[]> {
  return db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .leftJoin('sso_configurations', (join) =>
      join
        .onRef('sso_configurations.org_id', '=', 'members.org_id')
        .on('sso_configurations.status', '=', 'active'),
    )
    .select((eb) => {
      const factors = eb
        .selectFrom('mfa_enrollments')
        .select('mfa_enrollments.id')
        .whereRef('mfa_enrollments.user_id', '=', 'users.id')
        .where('mfa_enrollments.confirmed_at', 'is not', null);
      return [
        'members.user_id as userId',
        'users.email',
        'members.role',
        eb('users.password_hash', 'is not', null).$castTo<boolean>().as('hasPassword'),
        eb.exists(factors).$castTo<boolean>().as('hasFactor'),
        eb
          .exists(factors.where('mfa_enrollments.type', '=', 'webauthn'))
          .$castTo<boolean>()
          .as('hasPasskey'),
        eb
          .exists(
            eb
              .selectFrom('sso_identities')
              .select('sso_identities.user_id')
              .whereRef('sso_identities.provider_id', '=', 'sso_configurations.provider_id')
              .whereRef('sso_identities.user_id', '=', 'users.id'),
          )
          .$castTo<boolean>()
          .as('isLinked'),
        sql<boolean>`coalesce(split_part(${eb.ref('users.email')}, '@', 2) = any (${eb.ref('sso_configurations.domains')}),
          false)`.as('isInDomain'),
        eb
          .selectFrom('sessions')
          .select('sessions.ip')
          .whereRef('sessions.user_id', '=', 'users.id')
          .where('sessions.revoked_at', 'is', null)
          .where('sessions.expires_at', '>', sql<Date>`now()`)
          .orderBy('sessions.last_seen_at', 'desc')
          .limit(1)
          .as('lastIp'),
      ];
    })
    .where('members.org_id', '=', organizationId)
    .where('users.deleted_at', 'is', null)
    .orderBy('members.user_id')
    .limit(MAX_PREVIEWED_MEMBERS + 1)
    .execute();
}

function findEffects(member: MemberFacts, policies: AccessPolicies): PolicyEffect[] {
  const { userId, email, role } = member;
  return [
    findMfaEffect(member, policies),
    findSsoEffect(member, policies),
    findAddressEffect(member, policies),
  ]
    .filter((found) => found !== undefined)
    .map((found) => ({ userId, email, role, ...found }));
}

type Effect = Pick<PolicyEffect, 'policy' | 'isLockedOut' | 'effect'>;

function findMfaEffect(member: MemberFacts, policies: AccessPolicies): Effect | undefined {
  if (!policies.requireMfa || member.hasFactor) return undefined;
  if (policies.ssoSatisfiesMfa && (member.isLinked || policies.enforceSso)) return undefined;
  return {
    policy: 'require_mfa',
    isLockedOut: false,
    effect: 'Has to add a second factor at the next sign-in.',
  };
}

function findSsoEffect(member: MemberFacts, { enforceSso }: AccessPolicies): Effect | undefined {
  if (!enforceSso || member.isLinked) return undefined;
  const policy = 'enforce_sso';
  if (member.isInDomain)
    return { policy, isLockedOut: false, effect: 'Has to link the account with single sign-on once.' };
  const isBreakGlass =
    member.role === 'owner' && (member.hasPasskey || (member.hasPassword && member.hasFactor));
  if (isBreakGlass)
    return { policy, isLockedOut: false, effect: 'Gets in only as an owner without single sign-on.' };
  return {
    policy,
    isLockedOut: true,
    effect: 'Cannot get in: no active SSO configuration has the domain of the address.',
  };
}

function findAddressEffect({ lastIp }: MemberFacts, { allowedCidrs }: AccessPolicies): Effect | undefined {
  if (lastIp === null || isAddressAllowed(lastIp, allowedCidrs)) return undefined;
  return {
    policy: 'allowed_cidrs',
    isLockedOut: true,
    effect: `Cannot get in from ${lastIp}, the address of the newest session.`,
  };
}
