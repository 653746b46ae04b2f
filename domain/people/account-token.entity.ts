import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from './user.entity.ts';

export const ACCOUNT_TOKEN_PURPOSES = ['reset_password', 'change_email', 'recover'] as const;
export type AccountTokenPurpose = (typeof ACCOUNT_TOKEN_PURPOSES)[number];

/** A token that was mailed to a person. Works once. */
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
