import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';

/** A person. Not tenant data: a user may be a member of several organizations. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  checks: [{ name: 'users_status', expression: oneOf('status', ['active', 'suspended']) }],
  triggers: [
    functionTrigger({
      name: 'signal_users_access',
      table: 'users',
      event: 'update',
      when: 'old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    /** Stored in lower case. */
    email: p.text().unique(),
    name: p.text().strictNullable(),
    /** PHC string (argon2id); null for users who sign in only through another provider. */
    passwordHash: p.text().strictNullable(),
    /** When the person proved that the address is theirs; null for users created by the installation. */
    emailVerifiedAt: timestamp().strictNullable(),
    avatarUrl: p.text().strictNullable(),
    /** Names the person to authenticators (WebAuthn section 5.4.3): random, so that it reveals nothing. */
    webauthnHandle: p.blob().unique().defaultRaw('uuid_send(gen_random_uuid())'),
    /** Suspended by staff: the person cannot sign in. */
    status: p.text().$type<'active' | 'suspended'>().default('active'),
    /** When the person deleted their account; it can be recovered for 30 days. */
    deletedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type User = InferEntity<typeof UserEntity>;

const ACCOUNT_TOKEN_PURPOSES = ['reset_password', 'change_email', 'recover'] as const;
export type AccountTokenPurpose = (typeof ACCOUNT_TOKEN_PURPOSES)[number];

/** A token that was mailed to a person. It works once. */
export const AccountTokenEntity = defineEntity({
  name: 'AccountToken',
  tableName: 'account_tokens',
  indexes: [{ properties: ['userId'] }, { properties: ['expiresAt'] }],
  checks: [{ name: 'account_tokens_purpose', expression: oneOf('purpose', ACCOUNT_TOKEN_PURPOSES) }],
  properties: {
    tokenHash: p.blob().primary(),
    purpose: p.text().$type<AccountTokenPurpose>(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** `change_email`: the new address, in lower case. */
    newEmail: p.text().strictNullable(),
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type AccountToken = InferEntity<typeof AccountTokenEntity>;
