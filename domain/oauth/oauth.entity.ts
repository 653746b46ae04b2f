import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from '../people/user.entity.ts';
import { SessionEntity } from '../sessions/session.entity.ts';

/**
 * A person at an OAuth provider, and their account. The address does not identify the person, because it may change hands.
 */
export const OauthIdentityEntity = defineEntity({
  name: 'OauthIdentity',
  tableName: 'oauth_identities',
  uniques: [{ properties: ['userId', 'provider'] }],
  properties: {
    provider: p.text().primary(),
    issuer: p.text().primary(),
    subject: p.text().primary(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** The address that the provider last stated, for the list that the person sees. */
    email: p.text().strictNullable(),
    lastUsedAt: timestamp(),
    createdAt: createdAt(),
  },
});

/** A sign-in or link that waits for the answer of its provider. The answer deletes it. */
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
    /** The session of the person who links the provider; null for a sign-in. */
    sessionId: () =>
      p.manyToOne(SessionEntity).mapToPk().fieldName('session_id').strictNullable().deleteRule('cascade'),
    /** A path of this service. */
    redirectTo: p.text(),
    expiresAt: timestamp(),
    createdAt: createdAt(),
  },
});
