import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
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
  /** False: the member can do something about it. */
  isLockedOut: boolean;
  /** One sentence about the member. */
  effect: string;
}

export interface PolicyPreview {
  effects: PolicyEffect[];
  /** False for an organization of more members than are looked at. */
  isComplete: boolean;
}

export interface PolicyPreviewService {
  /**
   * Finds the members who would not get in as they do now. Changes nothing.
   *
   * @param change omitted policies are taken as they are.
   * @throws AppError `validation_error` for a malformed range; `permission_denied` without `members:read`.
   */
  preview(scope: Scope, change: Partial<AccessPolicies>): Promise<PolicyPreview>;
}

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

export function createPolicyPreviewService({ database }: { database: Database }): PolicyPreviewService {
  return {
    preview(scope, change) {
      requireOrganizationWide(scope);
      requirePermission(scope, 'members:read');
      requireValidRanges(change.allowedCidrs);
      const { organizationId } = scope;
      return database.peopleTransaction(async ({ em }) => {
        const policies = { ...(await findPolicies(em, organizationId)), ...change };
        const members = await readMembers(em, organizationId);
        return {
          effects: members.slice(0, MAX_PREVIEWED_MEMBERS).flatMap((member) => findEffects(member, policies)),
          isComplete: members.length <= MAX_PREVIEWED_MEMBERS,
        };
      });
    },
  };
}

function readMembers(em: EntityManager, organizationId: string): Promise<MemberFacts[]> {
  return em.execute<MemberFacts[]>(sql`
    select m.user_id as "userId", u.email, m.role, u.password_hash is not null as "hasPassword",
      exists (select from mfa_enrollments e where e.user_id = u.id and e.confirmed_at is not null) as "hasFactor",
      exists (select from mfa_enrollments e where e.user_id = u.id and e.confirmed_at is not null
        and e.type = 'webauthn') as "hasPasskey",
      exists (select from sso_identities i where i.provider_id = c.provider_id and i.user_id = u.id) as "isLinked",
      coalesce(split_part(u.email, '@', 2) = any (c.domains), false) as "isInDomain",
      (select s.ip from sessions s where s.user_id = u.id and s.revoked_at is null and s.expires_at > now()
        order by s.last_seen_at desc limit 1) as "lastIp"
    from members m
    join users u on u.id = m.user_id and u.deleted_at is null
    left join sso_configurations c on c.org_id = m.org_id and c.status = 'active'
    where m.org_id = ${organizationId} order by m.user_id limit ${MAX_PREVIEWED_MEMBERS + 1}`);
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
