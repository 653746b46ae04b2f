import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { SessionMethod } from '../identity/person.ts';
import { UserEntity } from './user.entity.ts';

export type MfaType = 'totp' | 'webauthn';

/** A second factor of a person: an authenticator app, or a WebAuthn credential (which can also sign in alone, as a passkey). */
export const MfaEnrollmentEntity = defineEntity({
  name: 'MfaEnrollment',
  tableName: 'mfa_enrollments',
  indexes: [{ properties: ['userId', 'id'] }],
  checks: [{ name: 'mfa_enrollments_type', expression: oneOf('type', ['totp', 'webauthn']) }],
  properties: {
    id: primaryId(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    type: p.text().$type<MfaType>(),
    name: p.text(),
    /** TOTP: the encrypted secret (RFC 6238). */
    secret: p.blob().strictNullable(),
    /** TOTP: the last accepted time step. Each step is accepted once (RFC 6238 section 5.2). */
    lastStep: p.integer().strictNullable(),
    /** WebAuthn: the credential's id, unique in the service. */
    credentialId: p.blob().strictNullable().unique(),
    /** WebAuthn: COSE public key. */
    publicKey: p.blob().strictNullable(),
    /** WebAuthn: signature counter; 0 for authenticators without one. */
    signatureCounter: p.bigint('number').strictNullable(),
    transports: p.array().default([]),
    /** WebAuthn: the RP ID the credential was registered for; it works for no other. */
    rpId: p.text().strictNullable(),
    /** Null until the person has proved the factor with a first code; until then it does not count as a factor. */
    confirmedAt: timestamp().strictNullable(),
    lastUsedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type MfaEnrollment = InferEntity<typeof MfaEnrollmentEntity>;

/** A code that can be used once in place of the second factor. */
export const RecoveryCodeEntity = defineEntity({
  name: 'RecoveryCode',
  tableName: 'mfa_recovery_codes',
  properties: {
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').primary().deleteRule('cascade'),
    /** HMAC of the code with a key of the server: a copy of the table is not enough to guess codes. */
    codeHash: p.blob().primary(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

/** A sign-in that waits for its second factor. */
export const MfaChallengeEntity = defineEntity({
  name: 'MfaChallenge',
  tableName: 'mfa_challenges',
  indexes: [{ properties: ['userId'] }, { properties: ['expiresAt'] }],
  properties: {
    /** Hash of the token (`mfa_token`), which is returned once and not stored. */
    tokenHash: p.blob().primary(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** The first factor. */
    method: p.text().$type<SessionMethod>(),
    ssoConfigurationId: idColumn().strictNullable(),
    /** Wrong codes so far. The challenge is void after the last allowed one. */
    failures: p.smallint().default(0),
    /** Hash of the cookie of the browser that signs in; null for clients without cookies. */
    browserTokenHash: p.blob().strictNullable(),
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type MfaChallenge = InferEntity<typeof MfaChallengeEntity>;

const WEBAUTHN_PURPOSES = ['enroll', 'second_factor', 'sign_in'] as const;
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

/** Failed sign-ins of an account or a network, which slow down the next ones. */
export const SignInAttemptsEntity = defineEntity({
  name: 'SignInAttempts',
  tableName: 'sign_in_attempts',
  indexes: [{ properties: ['lastAttemptAt'] }],
  properties: {
    /** Hash of `<kind>:<address or network>`: the table contains no addresses of people without an account. */
    keyHash: p.blob().primary(),
    /** Attempts since the last success. */
    failures: p.integer(),
    lastAttemptAt: timestamp(),
    /** No attempt is accepted before this time. */
    blockedUntil: timestamp(),
  },
});
