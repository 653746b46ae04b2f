import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, updatedAt } from '../../platform/database/columns.ts';

/** A person. Belongs to no tenant: a user may be a member of several organizations. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: primaryId(),
    /** Stored in lower case. */
    email: p.text().unique(),
    name: p.text().strictNullable(),
    /** PHC string (argon2id); empty for people who only come in through another provider. */
    passwordHash: p.text().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type User = InferEntity<typeof UserEntity>;
