import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Permission } from '../identity/permissions.ts';
import { ApiKeyEntity } from './api-key.entity.ts';
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
export async function createApiKey(
  db: Db,
  {
    organizationId,
    environmentId,
    inboxId = null,
    name,
    permissions,
    expiresAt = null,
    allowedCidrs = [],
    createdByKeyId = null,
    createdByUserId = null,
  }: ApiKeyFields,
  mode: 'live' | 'test',
): Promise<{ key: RowOf<typeof ApiKeyEntity>; token: string }> {
  const token = createApiKeyToken(mode);
  const key = await db
    .insertInto('api_keys')
    .values({
      id: newId('apiKey'),
      org_id: organizationId,
      env_id: environmentId,
      inbox_id: inboxId,
      name,
      token_hash: hashApiKeyToken(token),
      last_four: token.slice(-4),
      permissions,
      expires_at: expiresAt,
      allowed_cidrs: allowedCidrs,
      created_by_key_id: createdByKeyId,
      created_by_user_id: createdByUserId,
    })
    .returning(columnsOf(ApiKeyEntity))
    .executeTakeFirstOrThrow(() => new Error('The API key was not created'));
  return { key, token };
}
