import { type Static, Type } from 'typebox';
import type { ApiKey } from '../../domain/api-keys/api-key.entity.ts';
import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { singleLineText } from '../messages/addresses.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const permissions = Type.Array(enumOf(KEY_PERMISSIONS), {
  maxItems: KEY_PERMISSIONS.length,
  uniqueItems: true,
});

const fields = {
  id: id('Key id (key_…).'),
  name: text(255),
  last_four: text(4, { description: 'The last characters of the token.' }),
  permissions: Type.Array(enumOf(KEY_PERMISSIONS), { maxItems: 100 }),
  env_id: nullableText(128, { description: 'Null: every environment of the organization.' }),
  inbox_id: nullableText(128, { description: 'Null: every inbox of the environment.' }),
  expires_at: nullableTimestamp('Null: does not expire.'),
  created_by_user_id: nullableText(128, { description: 'The person behind the key; null if there is none.' }),
  created_by_key_id: nullableText(128, { description: 'The key that created this one; null if no key did.' }),
  last_used_at: nullableTimestamp('Accurate to the minute.'),
  created_at: timestamp(),
};

export const ApiKeyRecord = strictObject(fields, { $id: 'ApiKey', title: 'ApiKey' });

export const CreatedApiKey = strictObject(
  { ...fields, token: text(64, { description: 'The key itself (ask_…). Returned only once.' }) },
  { $id: 'CreatedApiKey', title: 'CreatedApiKey' },
);

export const CreateApiKey = strictObject(
  {
    name: singleLineText(255, { minLength: 1 }),
    permissions: Type.Optional(permissions),
    env_id: Type.Optional(
      orNull(text(128, { minLength: 1, description: 'Default: the binding of the creating key.' })),
    ),
    inbox_id: Type.Optional(orNull(text(128, { minLength: 1 }))),
    expires_at: Type.Optional(
      orNull(
        Type.String({
          format: 'date-time',
          maxLength: 40,
          description: 'Not later than the expiry of the creating key, which is the default.',
        }),
      ),
    ),
  },
  { $id: 'CreateApiKey', title: 'CreateApiKey' },
);

export function presentApiKey(key: ApiKey): Static<typeof ApiKeyRecord> {
  return {
    id: key.id,
    name: key.name,
    last_four: key.lastFour,
    permissions: key.permissions,
    env_id: key.environmentId ?? null,
    inbox_id: key.inboxId ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    created_by_user_id: key.createdByUserId,
    created_by_key_id: key.createdByKeyId,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    created_at: key.createdAt.toISOString(),
  };
}
