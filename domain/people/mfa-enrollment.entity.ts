import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
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
    /** Null until the person has proved the factor with a first code; it is no factor before that. */
    confirmedAt: timestamp().strictNullable(),
    lastUsedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type MfaEnrollment = InferEntity<typeof MfaEnrollmentEntity>;
