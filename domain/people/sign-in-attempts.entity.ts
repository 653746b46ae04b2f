import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';

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
