import { type Static, Type } from 'typebox';
import type { ApiKey } from '../../domain/api-keys/api-key.entity.ts';
import { AGENT_PERMISSIONS, KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { singleLineText } from '../messages/addresses.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const PreviousToken = strictObject({
  last_four: text(4),
  expires_at: timestamp('When the token stops working.'),
  last_used_at: nullableTimestamp('Whether clients still use it.'),
});

const permissions = (options: { description?: string } = {}) =>
  Type.Array(enumOf(KEY_PERMISSIONS), { maxItems: KEY_PERMISSIONS.length, uniqueItems: true, ...options });

const allowedCidrs = Type.Array(text(64), {
  maxItems: 100,
  description: 'Addresses and CIDR ranges that may use the key. Empty: every address.',
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
  allowed_cidrs: allowedCidrs,
  last_used_at: nullableTimestamp(
    'Accurate to the minute. Null after a rotation until the new token is used.',
  ),
  last_used_from: nullableText(64, { description: 'Address of the client at last_used_at.' }),
  previous_token: Type.Unsafe<Static<typeof PreviousToken> | null>({
    anyOf: [PreviousToken, { type: 'null' }],
    description: 'The token before the last rotation; null if it no longer works.',
  }),
  created_at: timestamp(),
};

export const ApiKeyRecord = resource('api_key', fields, { $id: 'ApiKey', title: 'ApiKey' });

export const CreatedApiKey = resource(
  'api_key',
  { ...fields, token: text(64, { description: 'The key itself (ask_…). Returned only once.' }) },
  { $id: 'CreatedApiKey', title: 'CreatedApiKey' },
);

export const CreateApiKey = strictObject(
  {
    name: singleLineText(255, { minLength: 1 }),
    permissions: Type.Optional(
      permissions({
        description: `Default: those of an agent, as far as the creating key or person has them: ${AGENT_PERMISSIONS.join(', ')}.`,
      }),
    ),
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
    allowed_cidrs: Type.Optional(
      Type.Array(text(64), {
        maxItems: 100,
        description:
          'Addresses and CIDR ranges that may use the key, within those of the creating key, which are the default.',
      }),
    ),
  },
  { $id: 'CreateApiKey', title: 'CreateApiKey' },
);

export const UpdateApiKey = strictObject(
  {
    name: Type.Optional(singleLineText(255, { minLength: 1 })),
    permissions: Type.Optional(permissions()),
    expires_at: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        format: 'date-time',
        maxLength: 40,
        description: 'Not later than the expiry of the calling key. Null: does not expire.',
      }),
    ),
    allowed_cidrs: Type.Optional(allowedCidrs),
  },
  { $id: 'UpdateApiKey', title: 'UpdateApiKey' },
);

export const RotateApiKey = strictObject(
  {
    overlap_seconds: Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 0,
      description: 'How long the old token still works, without the permission keys:manage.',
    }),
  },
  { $id: 'RotateApiKey', title: 'RotateApiKey' },
);

export function presentApiKey(key: ApiKey): Static<typeof ApiKeyRecord> {
  return {
    object: 'api_key',
    id: key.id,
    name: key.name,
    last_four: key.lastFour,
    permissions: key.permissions,
    env_id: key.environmentId ?? null,
    inbox_id: key.inboxId ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    created_by_user_id: key.createdByUserId,
    created_by_key_id: key.createdByKeyId,
    allowed_cidrs: key.allowedCidrs,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    last_used_from: key.lastUsedFrom,
    previous_token: presentPreviousToken(key),
    created_at: key.createdAt.toISOString(),
  };
}

function presentPreviousToken(key: ApiKey): Static<typeof PreviousToken> | null {
  const { previousLastFour, previousExpiresAt, previousLastUsedAt } = key;
  if (previousLastFour === null || previousExpiresAt === null || previousExpiresAt.getTime() <= Date.now())
    return null;
  return {
    last_four: previousLastFour,
    expires_at: previousExpiresAt.toISOString(),
    last_used_at: previousLastUsedAt?.toISOString() ?? null,
  };
}
