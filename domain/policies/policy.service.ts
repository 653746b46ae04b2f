import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { isCidr } from '../../platform/network.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import { isAddressAllowed } from '../identity/allowed-addresses.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { toDomainKey } from '../mime/mail-address.ts';
import { lockOrganization, requireBreakGlassOwner } from '../organizations/break-glass-owner.ts';
import { findPolicies, POLICY_COLUMNS, type Policies } from './find-policies.ts';
import { findWeakenedPolicies, type WeakenedPolicy } from './weakened-policies.ts';

/** Whether the active SSO configuration started the caller's session. Locks the configuration until the transaction ends. */
export type IsOwnSsoSession = (db: Db, scope: Scope) => Promise<boolean>;

export type PolicyService = ReturnType<typeof createPolicyService>;

export function createPolicyService({
  database,
  isOwnSsoSession,
  onWeaken,
}: {
  database: Database;
  isOwnSsoSession: IsOwnSsoSession;
  /** Informs the owners, in the transaction of the change. */
  onWeaken(transaction: Transaction, scope: Scope, policies: WeakenedPolicy[]): Promise<void>;
}) {
  return {
    get: (scope: Scope): Promise<Policies> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        return findPolicies(db, scope.organizationId);
      }),

    /**
     * Takes effect with the next request of each session and key, and the next message.
     *
     * @throws AppError `validation_error` for a malformed range or domain; `conflict` if the caller would lock themselves
     * out; `permission_denied` if anyone but a person weakens a policy.
     */
    async update(scope: Scope, change: Partial<Policies>): Promise<Policies> {
      requireOrganizationWide(scope);
      return database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        requireValidRanges(change.allowedCidrs);
        const normalized = normalizeDomains(change);
        const { organizationId } = scope;
        await lockOrganization(db, organizationId);
        const before = await lockPolicies(db, organizationId);
        const after = { ...before, ...normalized };
        const weakened = findWeakenedPolicies(before, after);
        requirePersonToWeaken(scope, weakened);
        const isOwnSso = await isOwnSsoSession(db, scope);
        requireCallerKeepsAccess(scope, after, isOwnSso);
        if (after.enforceSso && !before.enforceSso && !isOwnSso) throw notOwnSsoSession(organizationId);
        await storePolicies(db, organizationId, after);
        await recordAudit(db, scope, {
          action: 'policies.updated',
          resourceType: 'organization',
          resourceId: organizationId,
          details: { ...normalized, ...replacedValues(before, normalized) },
        });
        if (after.enforceSso) await requireBreakGlassOwner(db, organizationId);
        if (weakened.length > 0) await onWeaken(transaction, scope, weakened);
        return after;
      });
    },
  };
}

/** Creates the row if needed and locks it, so that concurrent changes of different policies both take effect. */
function lockPolicies(db: Db, organizationId: string): Promise<Policies> {
  const updatedAt = sql<Date>`now()`;
  return db
    .insertInto('organization_policies')
    .values({ org_id: organizationId, updated_at: updatedAt })
    .onConflict((conflict) => conflict.column('org_id').doUpdateSet({ updated_at: updatedAt }))
    .returning(POLICY_COLUMNS)
    .executeTakeFirstOrThrow(() => new Error(`The policies of ${organizationId} were not stored`));
}

async function storePolicies(db: Db, organizationId: string, policies: Policies): Promise<void> {
  await db
    .updateTable('organization_policies')
    .set({
      require_mfa: policies.requireMfa,
      enforce_sso: policies.enforceSso,
      sso_satisfies_mfa: policies.ssoSatisfiesMfa,
      session_max_age_hours: policies.sessionMaxAgeHours,
      allowed_cidrs: policies.allowedCidrs,
      max_recipients_per_message: policies.maxRecipientsPerMessage,
      allowed_recipient_domains: policies.allowedRecipientDomains,
      blocked_recipient_domains: policies.blockedRecipientDomains,
      daily_send_cap_per_inbox: policies.dailySendCapPerInbox,
      require_send_approval: policies.requireSendApproval,
      after_alarm: policies.afterAlarm,
      auto_submitted_header: policies.autoSubmittedHeader,
      support_access: policies.supportAccess,
      support_access_until: policies.supportAccessUntil,
    })
    .where('org_id', '=', organizationId)
    .execute();
}

/** @throws AppError `validation_error`. */
function normalizeDomains(change: Partial<Policies>): Partial<Policies> {
  const { allowedRecipientDomains: allowed, blockedRecipientDomains: blocked } = change;
  return {
    ...change,
    ...(allowed && { allowedRecipientDomains: toDomainKeys('allowed_recipient_domains', allowed) }),
    ...(blocked && { blockedRecipientDomains: toDomainKeys('blocked_recipient_domains', blocked) }),
  };
}

function toDomainKeys(field: string, domains: readonly string[]): string[] {
  const keys = domains.map((domain, index) => {
    const key = toDomainKey(domain);
    if (key !== null) return key;
    throw invalid(
      `/body/${field}/${index}`,
      'is not a domain',
      'Use a domain such as example.com, which includes its subdomains.',
    );
  });
  return [...new Set(keys)];
}

/** @throws AppError `validation_error`. */
export function requireValidRanges(ranges: readonly string[] = []): void {
  for (const [index, range] of ranges.entries())
    if (!isCidr(range))
      throw invalid(
        `/body/allowed_cidrs/${index}`,
        'must be an IP address or a CIDR range',
        'Use a form like 203.0.113.0/24 or 2001:db8::/32.',
      );
}

/**
 * Policies limit what keys do, so a key must not loosen them.
 *
 * @throws AppError `permission_denied`, naming the policies.
 */
function requirePersonToWeaken({ actor }: Scope, weakened: readonly WeakenedPolicy[]): void {
  if (actor.kind === 'user' || weakened.length === 0) return;
  const names = weakened.map(({ policy }) => policy).join(', ');
  throw new AppError('permission_denied', {
    detail: `This change weakens ${names}, which only a person may do. Nothing was changed.`,
    fix: 'Ask an owner or admin to make the change with their own session. A key may make policies stricter.',
    extensions: { permission: 'policies:manage', policy: weakened[0]?.policy ?? names },
  });
}

/** The caller must satisfy the new policies, so that a mistake cannot lock the organization out. */
function requireCallerKeepsAccess(
  { ip, member }: Scope,
  policies: Pick<Policies, 'requireMfa' | 'ssoSatisfiesMfa' | 'allowedCidrs'>,
  isOwnSso: boolean,
): void {
  if (ip !== undefined && !isAddressAllowed(ip, policies.allowedCidrs))
    throw lockout(
      'allowed_cidrs',
      'Your own address is not among the allowed ones.',
      'Add your address, or call from an allowed one.',
    );
  const { person } = member ?? {};
  const hasSecondFactor =
    person === undefined ||
    person.factors.length > 0 ||
    person.method === 'passkey' ||
    (isOwnSso && policies.ssoSatisfiesMfa);
  if (policies.requireMfa && !hasSecondFactor)
    throw lockout(
      'require_mfa',
      'You have not signed in with a second factor.',
      'Enroll one, and sign in with it first.',
    );
}

function notOwnSsoSession(organizationId: string): AppError {
  return new AppError('conflict', {
    detail: 'You have not signed in through the active SSO configuration. The policy would lock people out.',
    fix: `Sign in through it, and change the policy with that session: GET /api/v1/auth/sso/${organizationId}.`,
    extensions: { policy: 'enforce_sso' },
  });
}

function lockout(policy: string, detail: string, fix: string): AppError {
  return new AppError('conflict', {
    detail: `${detail} The policy would lock you out.`,
    fix,
    extensions: { policy },
  });
}
