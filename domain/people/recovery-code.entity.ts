import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { UserEntity } from './user.entity.ts';

/** A code that replaces the second factor once. */
export const RecoveryCodeEntity = defineEntity({
  name: 'RecoveryCode',
  tableName: 'mfa_recovery_codes',
  properties: {
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').primary().deleteRule('cascade'),
    /** HMAC of the code with a key of the server: a copy of the table is not enough to try codes. */
    codeHash: p.blob().primary(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});
