import { type FilterQuery, LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { AGENT_PERMISSIONS, type Permission } from '../identity/permissions.ts';
import { requirePermission, type Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { type Environment, EnvironmentEntity } from '../organizations/environment.entity.ts';
import { type ApiKey, ApiKeyEntity } from './api-key.entity.ts';
import { createApiKey } from './create-api-key.ts';

export interface NewApiKey {
  name: string;
  /** Default: those agent permissions that the creating key has. */
  permissions?: Permission[];
  /** Default: the binding of the creating key. */
  environmentId?: string;
  inboxId?: string;
  expiresAt?: Date;
}

export interface ApiKeyService {
  /**
   * Creates a key whose permissions, binding and lifetime do not exceed those of the creating key.
   *
   * @returns the key and its token, which is not returned again.
   * @throws AppError `permission_denied` for a permission the creating key lacks, or a later expiry; `not_found` for an
   * environment or inbox outside its scope.
   */
  create(scope: Scope, input: NewApiKey): Promise<{ key: ApiKey; token: string }>;
  /** Lists keys whose binding is within the caller's, without revoked ones. */
  list(scope: Scope, page: PageRequest): Promise<Page<ApiKey>>;
  /** @throws AppError `not_found`, including for a revoked key. */
  get(scope: Scope, keyId: string): Promise<ApiKey>;
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
        const permissions = resolvePermissions(scope, input.permissions);
        if (input.expiresAt && input.expiresAt.getTime() <= Date.now())
          throw invalid('/body/expires_at', 'must be in the future', 'Use a time in the future, or omit it.');
        const { environment, inboxId } = await resolveBinding(em, scope, input);
        const creator = await findCreator(em, scope);
        const created = createApiKey(
          em,
          {
            organizationId: scope.organizationId,
            environmentId: environment?.id ?? null,
            inboxId,
            name: input.name,
            permissions,
            expiresAt: resolveExpiry(creator, input.expiresAt),
            createdByKeyId: creator?.id ?? null,
            // The person behind a key is also behind the keys that it creates.
            createdByUserId:
              scope.actor.kind === 'user' ? scope.actor.id : (creator?.createdByUserId ?? null),
          },
          environment?.kind === 'sandbox' ? 'test' : 'live',
        );
        await recordAudit(em, scope, {
          action: 'api_key.created',
          resourceType: 'api_key',
          resourceId: created.key.id,
          details: { name: input.name, permissions, env_id: environment?.id ?? null, inbox_id: inboxId },
        });
        return created;
      }),

    list: (scope, page) =>
      database.read(scope, (reader) => findPage(reader, ApiKeyEntity, { where: keysInScope(scope), page })),

    get: (scope, keyId) => database.transaction(scope, ({ em }) => findKey(em, scope, keyId)),

    revoke: (scope, keyId, { children }) =>
      database.transaction(scope, async ({ em }) => {
        const key = await findKey(em, scope, keyId);
        key.revokedAt = new Date();
        await recordAudit(em, scope, {
          action: 'api_key.revoked',
          resourceType: 'api_key',
          resourceId: keyId,
          details: { revoke_children: children },
        });
        if (!children) return;
        // Waits for transactions in which this key creates another one; see `resolveExpiry`.
        await em.flush();
        await revokeDescendants(em, scope, keyId);
      }),
  };
}

/** `union` instead of `union all` ends the recursion even in a cycle. */
async function revokeDescendants(em: EntityManager, { organizationId }: Scope, keyId: string): Promise<void> {
  await em.execute(sql`
    with recursive descendants as (
      select id from api_keys where org_id = ${organizationId} and created_by_key_id = ${keyId}
      union
      select k.id from api_keys k join descendants d on k.created_by_key_id = d.id
      where k.org_id = ${organizationId})
    update api_keys set revoked_at = now() where id in (select id from descendants) and revoked_at is null`);
}

/**
 * Returns the key that creates another one; null for a person. Its row stays locked until the new key is committed, so
 * that revoking it with its children misses none.
 */
async function findCreator(em: EntityManager, { actor, organizationId }: Scope): Promise<ApiKey | null> {
  if (actor.kind !== 'api_key') return null;
  const creator = await em.findOne(
    ApiKeyEntity,
    { id: actor.id, organizationId, revokedAt: null },
    { lockMode: LockMode.PESSIMISTIC_READ },
  );
  if (!creator)
    throw new AppError('unauthenticated', { detail: 'The key was revoked.', fix: 'Use another key.' });
  return creator;
}

/** A key must not outlive the key that created it. */
function resolveExpiry(creator: ApiKey | null, requested: Date | undefined): Date | null {
  const latest = creator?.expiresAt ?? null;
  if (latest === null) return requested ?? null;
  if (requested === undefined) return latest;
  if (requested > latest)
    throw new AppError('permission_denied', {
      detail: `This key expires at ${latest.toISOString()}, and so must the keys it creates.`,
      fix: 'Use an earlier expires_at, or omit it.',
    });
  return requested;
}

async function findKey(em: EntityManager, scope: Scope, keyId: string): Promise<ApiKey> {
  const key = await em.findOne(ApiKeyEntity, { $and: [{ id: keyId }, keysInScope(scope)] });
  if (!key) throw notFound('API key', keyId);
  return key;
}

/**
 * An organization-wide key sees all keys, a bound key those with the same or a narrower binding, and a developer those that
 * they created.
 */
function keysInScope(scope: Scope): FilterQuery<ApiKey> {
  return {
    organizationId: scope.organizationId,
    revokedAt: null,
    ...(scope.environmentBound ? { environmentId: scope.environmentId } : {}),
    ...(scope.inboxId === undefined ? {} : { inboxId: scope.inboxId }),
    ...(scope.member?.role === 'developer' ? { createdByUserId: scope.member.person.userId } : {}),
  };
}

function resolvePermissions(scope: Scope, requested: Permission[] | undefined): Permission[] {
  if (!requested) return AGENT_PERMISSIONS.filter((permission) => scope.permissions.has(permission));
  for (const permission of requested) requirePermission(scope, permission);
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
