import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { AGENT_PERMISSIONS, type Permission } from '../identity/permissions.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { type Environment, EnvironmentEntity } from '../organizations/environment.entity.ts';
import { type ApiKey, ApiKeyEntity } from './api-key.entity.ts';
import { createApiKeyToken, hashApiKeyToken } from './api-key-token.ts';
import { createApiKey } from './create-api-key.ts';
import {
  type Authority,
  findManagedKeys,
  lockAuthority,
  requireGrantable,
  resolveExpiry,
  resolveRanges,
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

/** Omitted fields stay. */
export interface ApiKeyChange {
  name?: string;
  permissions?: Permission[];
  /** Null: does not expire. */
  expiresAt?: Date | null;
  allowedCidrs?: string[];
}

export interface ApiKeyService {
  /**
   * Creates a key whose permissions, binding, lifetime and address ranges do not exceed those of the caller.
   *
   * @returns the key and its token, which is not returned again.
   * @throws AppError `permission_denied` for a permission, range or expiry beyond the caller's; `not_found` for an
   * environment or inbox outside its scope.
   */
  create(scope: Scope, input: NewApiKey): Promise<{ key: ApiKey; token: string }>;
  /** Lists the keys that the caller manages, without revoked ones. */
  list(scope: Scope, filter: { createdByUserId?: string }, page: PageRequest): Promise<Page<ApiKey>>;
  /** @throws AppError `not_found`, including for a revoked key. */
  get(scope: Scope, keyId: string): Promise<ApiKey>;
  /**
   * Changes a key. Takes effect with its next request. The key gets nothing that neither it nor the caller has.
   *
   * @throws AppError `not_found`; `permission_denied`; `conflict` for an expired key.
   */
  update(scope: Scope, keyId: string, change: ApiKeyChange): Promise<ApiKey>;
  /**
   * Gives a key a new token. The old one works for `overlapSeconds` more, and cannot manage keys; one from an earlier
   * rotation ends.
   *
   * @throws AppError `not_found`; `permission_denied` for a key that may do more than the caller, who would get its token;
   * `conflict` for an expired key.
   */
  rotate(scope: Scope, keyId: string, overlapSeconds: number): Promise<{ key: ApiKey; token: string }>;
  /**
   * Takes effect with the next request.
   *
   * @param options.children also revokes the keys that this key created, and those that they created.
   * @throws AppError `not_found`.
   */
  revoke(scope: Scope, keyId: string, options: { children: boolean }): Promise<void>;
}

export function createApiKeyService({ database }: { database: Database }): ApiKeyService {
  return {
    create: (scope, input) =>
      database.transaction(scope, async ({ em }) => {
        const authority = await lockAuthority(em, scope);
        const permissions = resolvePermissions(authority, input.permissions);
        const { environment, inboxId } = await resolveBinding(em, scope, input);
        const created = createApiKey(
          em,
          {
            organizationId: scope.organizationId,
            environmentId: environment?.id ?? null,
            inboxId,
            name: input.name,
            permissions,
            expiresAt: resolveExpiry(authority, input.expiresAt),
            allowedCidrs: resolveRanges(authority, input.allowedCidrs),
            createdByKeyId: authority.key?.id ?? null,
            // The person behind a key is also behind the keys that it creates.
            createdByUserId: authority.userId,
          },
          environment?.kind === 'sandbox' ? 'test' : 'live',
        );
        const { id, expiresAt, allowedCidrs } = created.key;
        await recordAudit(em, scope, {
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

    list: (scope, { createdByUserId }, page) =>
      database.read(scope, async (reader) => {
        const where = [
          await findManagedKeys(reader, scope),
          ...(createdByUserId === undefined ? [] : [{ createdByUserId }]),
        ];
        return findPage(reader, ApiKeyEntity, { where, page });
      }),

    get: (scope, keyId) =>
      database.read(scope, async (reader) => {
        const where = [{ id: keyId }, (await findManagedKeys(reader, scope)) as object];
        const key = await findRow(reader, ApiKeyEntity, { where });
        if (!key) throw notFound('API key', keyId);
        return key;
      }),

    update: (scope, keyId, change) =>
      database.transaction(scope, async ({ em }) => {
        const key = await lockKey(em, scope, keyId);
        requireUnexpired(key);
        const authority = await lockAuthority(em, scope);
        const { name, permissions, expiresAt, allowedCidrs } = change;
        if (name !== undefined) key.name = name;
        if (permissions !== undefined) {
          requireGrantable(authority, permissions, key.permissions);
          key.permissions = [...new Set(permissions)];
        }
        if (expiresAt !== undefined) {
          key.expiresAt = resolveExpiry(authority, expiresAt, key.expiresAt);
          key.expiryNotifiedAt = null;
        }
        if (allowedCidrs !== undefined)
          key.allowedCidrs = resolveRanges(authority, allowedCidrs, key.allowedCidrs);
        await recordAudit(em, scope, {
          action: 'api_key.updated',
          resourceType: 'api_key',
          resourceId: keyId,
          details: {
            ...(name === undefined ? {} : { name }),
            ...(permissions === undefined ? {} : { permissions }),
            ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
            ...(allowedCidrs === undefined ? {} : { allowed_cidrs: allowedCidrs }),
          },
        });
        return key;
      }),

    rotate: (scope, keyId, overlapSeconds) =>
      database.transaction(scope, async ({ em }) => {
        const key = await lockKey(em, scope, keyId);
        requireUnexpired(key);
        const authority = await lockAuthority(em, scope);
        requireGrantable(authority, key.permissions);
        resolveExpiry(authority, key.expiresAt);
        resolveRanges(authority, key.allowedCidrs);
        const token = await replaceToken(em, key, overlapSeconds);
        await recordAudit(em, scope, {
          action: 'api_key.rotated',
          resourceType: 'api_key',
          resourceId: keyId,
          details: { overlap_seconds: overlapSeconds },
        });
        return { key, token };
      }),

    revoke: (scope, keyId, { children }) =>
      database.transaction(scope, async ({ em }) => {
        const key = await lockKey(em, scope, keyId);
        key.revokedAt = new Date();
        await recordAudit(em, scope, {
          action: 'api_key.revoked',
          resourceType: 'api_key',
          resourceId: keyId,
          details: { revoke_children: children },
        });
        if (!children) return;
        // Waits for transactions in which this key creates another one; see `lockAuthority`.
        await em.flush();
        await revokeDescendants(em, scope.organizationId, keyId);
      }),
  };
}

async function replaceToken(em: EntityManager, key: ApiKey, overlapSeconds: number): Promise<string> {
  const environment =
    key.environmentId === null ? null : await em.findOne(EnvironmentEntity, { id: key.environmentId });
  const token = createApiKeyToken(environment?.kind === 'sandbox' ? 'test' : 'live');
  const overlaps = overlapSeconds > 0;
  key.previousTokenHash = overlaps ? key.tokenHash : null;
  key.previousLastFour = overlaps ? key.lastFour : null;
  key.previousExpiresAt = overlaps ? new Date(Date.now() + overlapSeconds * 1_000) : null;
  key.previousLastUsedAt = overlaps ? key.lastUsedAt : null;
  key.tokenHash = hashApiKeyToken(token);
  key.lastFour = token.slice(-4);
  key.lastUsedAt = null;
  return token;
}

/** A leaked key that has expired must not come back. */
function requireUnexpired({ expiresAt }: ApiKey): void {
  if (expiresAt === null || expiresAt.getTime() > Date.now()) return;
  throw new AppError('conflict', {
    detail: `The key expired at ${expiresAt.toISOString()}.`,
    fix: 'Create a new key: POST /api/v1/api-keys.',
  });
}

/** Locks the key before the caller's own row, which may be the same one. */
async function lockKey(em: EntityManager, scope: Scope, keyId: string): Promise<ApiKey> {
  const key = await em.findOne(
    ApiKeyEntity,
    { $and: [{ id: keyId }, await findManagedKeys(em, scope)] },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  if (!key) throw notFound('API key', keyId);
  return key;
}

function resolvePermissions(authority: Authority, requested: Permission[] | undefined): Permission[] {
  if (!requested) return AGENT_PERMISSIONS.filter((permission) => authority.permissions.has(permission));
  requireGrantable(authority, requested);
  return [...new Set(requested)];
}

async function resolveBinding(
  em: EntityManager,
  scope: Scope,
  input: NewApiKey,
): Promise<{ environment: Environment | null; inboxId: string | null }> {
  const inboxId = input.inboxId ?? scope.inboxId ?? null;
  const isBound = scope.environmentBound || inboxId !== null;
  const environmentId = input.environmentId ?? (isBound ? scope.environmentId : null);
  if (environmentId === null) return { environment: null, inboxId: null };
  const environment =
    scope.environmentBound && environmentId !== scope.environmentId
      ? null
      : await em.findOne(EnvironmentEntity, { id: environmentId, organizationId: scope.organizationId });
  if (!environment) throw notFound('environment', environmentId);
  if (inboxId !== null) await findInbox(em, { ...scope, environmentId }, inboxId);
  return { environment, inboxId };
}
