import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp } from '../../platform/database/columns.ts';

/**
 * A sign-up that waits for its proof: the address by the mailed token, and the person by the browser that signed up or by
 * the password. Until then no user exists, so a stranger's address cannot be signed up. One row per attempt.
 */
export const SignUpEntity = defineEntity({
  name: 'SignUp',
  tableName: 'sign_ups',
  indexes: [{ properties: ['email'] }, { properties: ['expiresAt'] }],
  properties: {
    id: primaryId(),
    /** Lower case. */
    email: p.text(),
    name: p.text(),
    organizationName: p.text(),
    passwordHash: p.text(),
    /** Hash of the mailed token. */
    linkTokenHash: p.blob().unique(),
    /** Hash of the cookie of the browser that signed up. */
    browserTokenHash: p.blob(),
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type SignUp = InferEntity<typeof SignUpEntity>;
