import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from '../people/user.entity.ts';

/** A person at an OAuth provider, and their account. The address is no key: it may change hands. */
export const OauthIdentityEntity = defineEntity({
  name: 'OauthIdentity',
  tableName: 'oauth_identities',
  uniques: [{ properties: ['userId', 'provider'] }],
  properties: {
    provider: p.text().primary(),
    issuer: p.text().primary(),
    subject: p.text().primary(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** As the provider stated it last, for the list that the person sees. */
    email: p.text().strictNullable(),
    lastUsedAt: timestamp(),
    createdAt: createdAt(),
  },
});
