import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, timestamp } from '../../platform/database/columns.ts';
import type { SessionMethod } from '../identity/person.ts';
import { UserEntity } from './user.entity.ts';

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
