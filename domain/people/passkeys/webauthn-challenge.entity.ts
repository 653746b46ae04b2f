import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, timestamp } from '../../../platform/database/columns.ts';
import { UserEntity } from '../user.entity.ts';

export const WEBAUTHN_PURPOSES = ['enroll', 'second_factor', 'sign_in'] as const;
export type WebauthnPurpose = (typeof WEBAUTHN_PURPOSES)[number];

/** A challenge that an authenticator is to sign. It is deleted when it is used. */
export const WebauthnChallengeEntity = defineEntity({
  name: 'WebauthnChallenge',
  tableName: 'webauthn_challenges',
  indexes: [{ properties: ['userId'] }, { properties: ['expiresAt'] }],
  checks: [{ name: 'webauthn_challenges_purpose', expression: oneOf('purpose', WEBAUTHN_PURPOSES) }],
  properties: {
    challengeHash: p.blob().primary(),
    purpose: p.text().$type<WebauthnPurpose>(),
    /** Who enrolls a credential or proves a second factor; null for a passkey sign-in, which names its person at the end. */
    userId: () =>
      p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade').strictNullable(),
    /** `second_factor`: hash of the `mfa_token` it was requested for. */
    mfaTokenHash: p.blob().strictNullable(),
    expiresAt: timestamp(),
    createdAt: createdAt(),
  },
});
