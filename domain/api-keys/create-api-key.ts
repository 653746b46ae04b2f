import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import type { Permission } from '../identity/permissions.ts';
import { type ApiKey, ApiKeyEntity } from './api-key.entity.ts';
import { createApiKeyToken, hashApiKeyToken } from './api-key-token.ts';

export interface ApiKeyFields {
  organizationId: string;
  /** Null: every environment. */
  environmentId: string | null;
  /** Null: every inbox. */
  inboxId?: string | null;
  name: string;
  permissions: Permission[];
  expiresAt?: Date | null;
  /** Default: every address. */
  allowedCidrs?: string[];
  createdByKeyId?: string | null;
  createdByUserId?: string | null;
}

/**
 * Creates a key in the caller's transaction. The caller checks that it may grant the permissions.
 *
 * @returns the key, and its token, which is not stored.
 */
export function createApiKey(
  em: EntityManager,
  {
    inboxId = null,
    expiresAt = null,
    createdByKeyId = null,
    createdByUserId = null,
    ...fields
  }: ApiKeyFields,
  mode: 'live' | 'test',
): { key: ApiKey; token: string } {
  const token = createApiKeyToken(mode);
  const key = em.create(ApiKeyEntity, {
    ...fields,
    id: newId('apiKey'),
    inboxId,
    tokenHash: hashApiKeyToken(token),
    lastFour: token.slice(-4),
    expiresAt,
    createdByKeyId,
    createdByUserId,
    revokedAt: null,
    lastUsedAt: null,
    expiryNotifiedAt: null,
    previousTokenHash: null,
    previousLastFour: null,
    previousExpiresAt: null,
    previousLastUsedAt: null,
  });
  em.persist(key);
  return { key, token };
}
