import { sql, type Updateable } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import { AGENT_PERMISSIONS, type Permission } from '../identity/permissions.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import type { Environment } from '../organizations/environment.entity.ts';
import { ApiKeyEntity } from './api-key.entity.ts';
import { createApiKeyToken, hashApiKeyToken } from './api-key-token.ts';
import { createApiKey } from './create-api-key.ts';
import {
  type ApiKeyRow,
  type Authority,
  lockAuthority,
  requireGrantable,
  resolveExpiry,
  resolveRanges,
  selectManagedKeys,
} from './key-authority.ts';
import { revokeDescendants } from './revoke-keys.ts';

export interface NewApiKey {
  name: string;
  /** Default: those agent permissions that the caller has. */
  permissions?: Permission[];
  /** Default: the binding of the creating key. */
  environmentId?: string;
  inboxId?: string;
  /** Default: the expiry of the creating key. */
  expiresAt?: Date;
  /** Default: the ranges of the creating key. */
  allowedCidrs?: string[];
}

export interface ApiKeyFilter {
  createdByUserId?: string | undefined;
  createdByKeyId?: string | undefined;
  /** Neither used nor created since then. */
  lastUsedBefore?: Date | undefined;
}

/** Omitted fields stay. */
export interface ApiKeyChange {
  name?: string;
  permissions?: Permission[];
  /** Null: does not expire. */
  expiresAt?: Date | null;
  allowedCidrs?: string[];
}

/** For the audit log. */
function describeChange(key: ApiKeyRow, { name, permissions, expiresAt, allowedCidrs }: ApiKeyChange) {
  const change = {
    ...(name === undefined ? {} : { name }),
    ...(permissions === undefined ? {} : { permissions }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(allowedCidrs === undefined ? {} : { allowed_cidrs: allowedCidrs }),
  };
  const { expiresAt: expires_at, allowedCidrs: allowed_cidrs } = key;
  return { ...change, ...replacedValues({ ...key, expires_at, allowed_cidrs }, change) };
}

export type ApiKeyService = ReturnType<typeof createApiKeyService>;

export function createApiKeyService({ database }: { database: Database }) {
  return {
    /**
     * Creates a key whose permissions, binding, lifetime and address ranges do not exceed those of the caller.
     *
     * @returns the key and its token, which is not returned again.
     * @throws AppError `permission_denied` for a permission, range or expiry beyond the caller's; `not_found` for an
     * environment or inbox outside its scope.
     */
    create: (scope: Scope, input: NewApiKey): Promise<{ key: ApiKeyRow; token: string }> =>
      database.transaction(scope, async ({ db }) => {
        const authority = await lockAuthority(db, scope);
        const permissions = resolvePermissions(authority, input.permissions);
        const { environment, inboxId } = await resolveBinding(db, scope, input);
        const created = await createApiKey(
          db,
          {
            organizationId: scope.organizationId,
            environmentId: environment?.id ?? null,
            inboxId,
            name: input.name,
            permissions,
            expiresAt: resolveExpiry(authority, input.expiresAt),
            allowedCidrs: resolveRanges(authority, input.allowedCidrs),
            createdByKeyId: authority.keyId,
            // The person behind a key is also behind the keys that it creates.
            createdByUserId: authority.userId,
          },
          environment?.kind === 'sandbox' ? 'test' : 'live',
        );
        const { id, expiresAt, allowedCidrs } = created.key;
        await recordAudit(db, scope, {
          action: 'api_key.created',
          resourceType: 'api_key',
          resourceId: id,
          details: {
            name: input.name,
            permissions,
            env_id: environment?.id ?? null,
            inbox_id: inboxId,
            expires_at: expiresAt,
            allowed_cidrs: allowedCidrs,
          },
        });
        return created;
      }),

    /** Lists the keys that the caller manages, without revoked ones. */
    list: (
      scope: Scope,
      { createdByUserId, createdByKeyId, lastUsedBefore }: ApiKeyFilter,
      page: PageRequest,
    ): Promise<Page<ApiKeyRow>> =>
      database.read(scope, async ({ db }) => {
        const managed = await selectManagedKeys(db, scope);
        return findPage(
          managed
            .$if(createdByUserId !== undefined, (query) =>
              query.where('created_by_user_id', '=', createdByUserId ?? ''),
            )
            .$if(createdByKeyId !== undefined, (query) =>
              query.where('created_by_key_id', '=', createdByKeyId ?? ''),
            )
            .$if(lastUsedBefore !== undefined, (query) =>
              query.where(
                sql<Date>`greatest(last_used_at, previous_last_used_at, created_at)`,
                '<',
                lastUsedBefore ?? null,
              ),
            ),
          'api_keys.id',
          page,
        );
      }),

    /** Which of the keys the caller may see and change. */
    async findManaged(scope: Scope, keyIds: readonly string[]): Promise<ReadonlySet<string>> {
      if (keyIds.length === 0) return new Set();
      const found = await database.read(scope, async ({ db }) => {
        const managed = await selectManagedKeys(db, scope);
        return managed.where('id', 'in', keyIds).execute();
      });
      return new Set(found.map(({ id }) => id));
    },

    /** @throws AppError `not_found`, including for a revoked key. */
    get: (scope: Scope, keyId: string): Promise<ApiKeyRow> =>
      database.read(scope, async ({ db }) => {
        const managed = await selectManagedKeys(db, scope);
        const key = await managed.where('id', '=', keyId).executeTakeFirst();
        if (!key) throw notFound('API key', keyId);
        return key;
      }),

    /**
     * Changes a key. Takes effect with its next request. The key gets no right that neither it nor the caller already has.
     *
     * @throws AppError `not_found`; `permission_denied`; `conflict` for an expired key.
     */
    update: (scope: Scope, keyId: string, change: ApiKeyChange): Promise<ApiKeyRow> =>
      database.transaction(scope, async ({ db }) => {
        const key = await lockKey(db, scope, keyId);
        requireUnexpired(key);
        const authority = await lockAuthority(db, scope);
        const { name, permissions, expiresAt, allowedCidrs } = change;
        if (permissions !== undefined) requireGrantable(authority, permissions, key.permissions);
        const changed = await updateKey(db, key, {
          ...(name === undefined ? {} : { name }),
          ...(permissions === undefined ? {} : { permissions: [...new Set(permissions)] }),
          ...(expiresAt === undefined
            ? {}
            : { expires_at: resolveExpiry(authority, expiresAt, key.expiresAt), expiry_notified_at: null }),
          ...(allowedCidrs === undefined
            ? {}
            : { allowed_cidrs: resolveRanges(authority, allowedCidrs, key.allowedCidrs) }),
        });
        await recordAudit(db, scope, {
          action: 'api_key.updated',
          resourceType: 'api_key',
          resourceId: keyId,
          details: describeChange(key, change),
        });
        return changed;
      }),

    /**
     * Gives a key a new token. The old token works for another `overlapSeconds`, but cannot manage keys; a token from an
     * earlier rotation stops working.
     *
     * @throws AppError `not_found`; `permission_denied` for a key that may do more than the caller, who would get its token;
     * `conflict` for an expired key.
     */
    rotate: (
      scope: Scope,
      keyId: string,
      overlapSeconds: number,
    ): Promise<{ key: ApiKeyRow; token: string }> =>
      database.transaction(scope, async ({ db }) => {
        const key = await lockKey(db, scope, keyId);
        requireUnexpired(key);
        const authority = await lockAuthority(db, scope);
        requireGrantable(authority, key.permissions);
        resolveExpiry(authority, key.expiresAt);
        resolveRanges(authority, key.allowedCidrs);
        const rotated = await replaceToken(db, key, overlapSeconds);
        await recordAudit(db, scope, {
          action: 'api_key.rotated',
          resourceType: 'api_key',
          resourceId: keyId,
          details: { overlap_seconds: overlapSeconds },
        });
        return rotated;
      }),

    /**
     * Takes effect with the next request.
     *
     * @param options.children also revokes the keys that this key created, directly or through other keys.
     * @throws AppError `not_found`.
     */
    revoke: (scope: Scope, keyId: string, { children }: { children: boolean }): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const key = await lockKey(db, scope, keyId);
        await updateKey(db, key, { revoked_at: new Date() });
        await recordAudit(db, scope, {
          action: 'api_key.revoked',
          resourceType: 'api_key',
          resourceId: keyId,
          details: { revoke_children: children },
        });
        if (!children) return;
        // Waits for transactions in which this key creates another one; see `lockAuthority`.
        await revokeDescendants(db, scope.organizationId, keyId);
      }),
  };
}

async function replaceToken(
  db: Db,
  key: ApiKeyRow,
  overlapSeconds: number,
): Promise<{ key: ApiKeyRow; token: string }> {
  const environment =
    key.environmentId === null
      ? undefined
      : await db
          .selectFrom('environments')
          .select('kind')
          .where('id', '=', key.environmentId)
          .executeTakeFirst();
  const token = createApiKeyToken(environment?.kind === 'sandbox' ? 'test' : 'live');
  const overlaps = overlapSeconds > 0;
  const rotated = await updateKey(db, key, {
    previous_token_hash: overlaps ? key.tokenHash : null,
    previous_last_four: overlaps ? key.lastFour : null,
    previous_expires_at: overlaps ? new Date(Date.now() + overlapSeconds * 1_000) : null,
    previous_last_used_at: overlaps ? key.lastUsedAt : null,
    token_hash: hashApiKeyToken(token),
    last_four: token.slice(-4),
    last_used_at: null,
    last_used_from: null,
  });
  return { key: rotated, token };
}

/** Returns the changed key. The caller holds its lock. */
async function updateKey(db: Db, key: ApiKeyRow, change: Updateable<Tables['api_keys']>): Promise<ApiKeyRow> {
  if (Object.keys(change).length === 0) return key;
  return db
    .updateTable('api_keys')
    .set(change)
    .where('id', '=', key.id)
    .returning(columnsOf(ApiKeyEntity))
    .executeTakeFirstOrThrow(() => notFound('API key', key.id));
}

/** An expired key may have leaked, so it must not become valid again. */
function requireUnexpired({ expiresAt }: ApiKeyRow): void {
  if (expiresAt === null || expiresAt.getTime() > Date.now()) return;
  throw new AppError('conflict', {
    detail: `The key expired at ${expiresAt.toISOString()}.`,
    fix: 'Create a new key: POST /api/v1/api-keys.',
  });
}

/** Locks the key before the caller's own row, which may be the same one. */
async function lockKey(db: Db, scope: Scope, keyId: string): Promise<ApiKeyRow> {
  const managed = await selectManagedKeys(db, scope);
  const key = await managed.where('id', '=', keyId).forUpdate().executeTakeFirst();
  if (!key) throw notFound('API key', keyId);
  return key;
}

function resolvePermissions(authority: Authority, requested: Permission[] | undefined): Permission[] {
  if (!requested) return AGENT_PERMISSIONS.filter((permission) => authority.permissions.has(permission));
  requireGrantable(authority, requested);
  return [...new Set(requested)];
}

async function resolveBinding(
  db: Db,
  scope: Scope,
  input: NewApiKey,
): Promise<{ environment: Pick<Environment, 'id' | 'kind'> | null; inboxId: string | null }> {
  const inboxId = input.inboxId ?? scope.inboxId ?? null;
  const isBound = scope.environmentBound || inboxId !== null;
  const environmentId = input.environmentId ?? (isBound ? scope.environmentId : null);
  if (environmentId === null) return { environment: null, inboxId: null };
  const environment =
    scope.environmentBound && environmentId !== scope.environmentId
      ? undefined
      : await db
          .selectFrom('environments')
          .select(['id', 'kind'])
          .where('id', '=', environmentId)
          .where('org_id', '=', scope.organizationId)
          .executeTakeFirst();
  if (!environment) throw notFound('environment', environmentId);
  if (inboxId !== null) await findInbox(db, { ...scope, environmentId }, inboxId);
  return { environment, inboxId };
}
