import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { isCidr } from '../../platform/network.ts';
import { isRangeWithin } from '../identity/allowed-addresses.ts';
import { unauthenticated } from '../identity/authentication.ts';
import type { Permission } from '../identity/permissions.ts';
import { type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { requirePermission, type Scope } from '../identity/scope.ts';
import { ApiKeyEntity } from './api-key.entity.ts';

/** The most that a caller may grant to a key: a caller cannot grant what they lack. */
export interface Authority {
  permissions: ReadonlySet<Permission>;
  /** Null: no limit. */
  expiresAt: Date | null;
  /** Empty: every address. */
  allowedCidrs: readonly string[];
  /** The key that makes the request; null for a person. */
  keyId: string | null;
  /** The person who makes the request or is behind the key; null if there is none. */
  userId: string | null;
}

/**
 * Reads what the caller may grant. Locks their key or membership until the commit, so that revoking the key with its
 * children, or removing the member with their keys, misses no new key.
 */
export async function lockAuthority(db: Db, scope: Scope): Promise<Authority> {
  const { actor, organizationId } = scope;
  if (actor.kind === 'api_key') {
    const key = await db
      .selectFrom('api_keys')
      .select([
        'id',
        'expires_at as expiresAt',
        'allowed_cidrs as allowedCidrs',
        'created_by_user_id as userId',
      ])
      .where('id', '=', actor.id)
      .where('org_id', '=', organizationId)
      .where('revoked_at', 'is', null)
      .forShare()
      .executeTakeFirst();
    if (!key) throw unauthenticated();
    const { id: keyId, expiresAt, allowedCidrs, userId } = key;
    // Permissions come from the scope, because the token before a rotation has fewer than the key.
    return { permissions: scope.permissions, expiresAt, allowedCidrs, keyId, userId };
  }
  const member = await db
    .selectFrom('members')
    .select('role')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', actor.id)
    .forShare()
    .executeTakeFirst();
  if (!member) throw unauthenticated();
  return {
    permissions: new Set(ROLE_PERMISSIONS[member.role]),
    expiresAt: null,
    allowedCidrs: [],
    keyId: null,
    userId: actor.id,
  };
}

export type ApiKeyRow = RowOf<typeof ApiKeyEntity>;

/**
 * Selects the keys that the caller may see and change: those within the caller's binding. Developers and their keys manage
 * only keys that the developer created, so a key manages no more keys than its creator.
 */
export async function selectManagedKeys(db: Db, scope: Scope) {
  const userId = await findRestrictingUser(db, scope);
  const { organizationId, environmentBound, environmentId, inboxId } = scope;
  return db
    .selectFrom('api_keys')
    .select(columnsOf(ApiKeyEntity))
    .where('org_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .$if(environmentBound, (query) => query.where('env_id', '=', environmentId))
    .$if(inboxId !== undefined, (query) => query.where('inbox_id', '=', inboxId ?? ''))
    .$if(userId !== null, (query) => query.where('created_by_user_id', '=', userId));
}

/** Returns the person whose keys are the only ones that the caller manages; null if the caller manages all keys. */
async function findRestrictingUser(db: Db, { organizationId, actor, member }: Scope): Promise<string | null> {
  if (member) return isAdministrator(member.role) ? null : member.person.userId;
  const creator = await db
    .selectFrom('api_keys as k')
    .leftJoin('members as m', (join) =>
      join.onRef('m.org_id', '=', 'k.org_id').onRef('m.user_id', '=', 'k.created_by_user_id'),
    )
    .select(['k.created_by_user_id as userId', 'm.role'])
    .where('k.org_id', '=', organizationId)
    .where('k.id', '=', actor.id)
    .executeTakeFirst();
  return creator && !isAdministrator(creator.role) ? creator.userId : null;
}

const isAdministrator = (role: MemberRole | null): boolean => role === 'owner' || role === 'admin';

/** @throws AppError `permission_denied` for a permission that neither the caller nor the key has. */
export function requireGrantable(
  authority: Authority,
  permissions: readonly Permission[],
  held: readonly Permission[] = [],
): void {
  for (const permission of permissions)
    if (!held.includes(permission)) requirePermission(authority, permission);
}

/**
 * Returns the expiry of a key.
 *
 * @param requested undefined: as late as allowed; null: none.
 * @param held the key's present expiry, which may stay or become earlier; undefined for a new key.
 * @throws AppError `permission_denied` for a later expiry than the caller's.
 */
export function resolveExpiry(
  { expiresAt: latest }: Pick<Authority, 'expiresAt'>,
  requested: Date | null | undefined,
  held?: Date | null,
): Date | null {
  if (requested === undefined) return latest;
  if (requested !== null && requested.getTime() <= Date.now())
    throw invalid('/body/expires_at', 'must be in the future', 'Use a time in the future, or omit it.');
  const isWithin = (limit: Date | null) => limit === null || (requested !== null && requested <= limit);
  if (isWithin(latest) || (held !== undefined && isWithin(held))) return requested;
  throw new AppError('permission_denied', {
    detail: `This key expires at ${latest?.toISOString()}, and so must the keys it creates or changes.`,
    fix: 'Use an earlier expires_at, or omit it.',
  });
}

/**
 * Returns the ranges that may use a key.
 *
 * @param requested undefined: those of the caller.
 * @param held the key's present ranges, which may become narrower; undefined for a new key.
 * @throws AppError `validation_error` for a malformed range, `permission_denied` for one beyond the caller's.
 */
export function resolveRanges(
  { allowedCidrs: widest }: Pick<Authority, 'allowedCidrs'>,
  requested: readonly string[] | undefined,
  held?: readonly string[],
): string[] {
  if (requested === undefined) return [...widest];
  for (const [index, range] of requested.entries())
    if (!isCidr(range))
      throw invalid(
        `/body/allowed_cidrs/${index}`,
        'must be an IP address or a CIDR range',
        'Use a form like 203.0.113.0/24 or 2001:db8::/32.',
      );
  const limits = held === undefined ? [widest] : [widest, held];
  const ranges = requested.length === 0 ? ['::/0'] : requested;
  const beyond = ranges.find((range) => !limits.some((limit) => isRangeWithin(range, limit)));
  if (beyond === undefined) return [...requested];
  throw new AppError('permission_denied', {
    detail: `This key may be used only from ${widest.join(', ')}, and so must the keys it creates or changes.`,
    fix: 'Use ranges within those of the key, or omit allowed_cidrs.',
  });
}
