import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from '../people/user.entity.ts';

/**
 * A browser in which a person has completed a sign-in. Its failed attempts count for itself, so that strangers who guess
 * the password cannot keep the person out. It proves nothing: password and second factor are asked for as anywhere else.
 */
export const KnownDeviceEntity = defineEntity({
  name: 'KnownDevice',
  tableName: 'known_devices',
  indexes: [{ properties: ['userId'] }, { properties: ['expiresAt'] }],
  properties: {
    /** Hash of the token in the browser's cookie. A browser has one token for each person. */
    tokenHash: p.blob().primary(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** Failed attempts since the last complete sign-in. */
    failures: p.integer(),
    createdAt: createdAt(),
    /** When a sign-in completed in the browser again; null if none has. */
    lastUsedAt: timestamp().strictNullable(),
    expiresAt: timestamp(),
  },
});
