import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from '../people/user.entity.ts';
import { SessionEntity } from '../sessions/session.entity.ts';

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

/** A sign-in or a link that has left for its provider. Deleted when it comes back. */
export const OauthTransactionEntity = defineEntity({
  name: 'OauthTransaction',
  tableName: 'oauth_transactions',
  indexes: [{ properties: ['sessionId'] }, { properties: ['expiresAt'] }],
  properties: {
    /** Hash of `state`. */
    stateHash: p.blob().primary(),
    provider: p.text(),
    /** Hash of the cookie of the browser that started it. Nonce and PKCE verifier are derived from the cookie. */
    browserTokenHash: p.blob(),
    /** The session that links the provider to its person; null for a sign-in. */
    sessionId: () =>
      p.manyToOne(SessionEntity).mapToPk().fieldName('session_id').strictNullable().deleteRule('cascade'),
    /** A path of this service. */
    redirectTo: p.text(),
    expiresAt: timestamp(),
    createdAt: createdAt(),
  },
});
