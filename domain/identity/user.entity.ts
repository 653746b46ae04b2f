import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, updatedAt } from '../../platform/database/columns.ts';

/** A person. Not tenant data: a user may be a member of several organizations. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    id: primaryId(),
    /** Stored in lower case. */
    email: p.text().unique(),
    name: p.text().strictNullable(),
    /** PHC string (argon2id); null for users who sign in only through another provider. */
    passwordHash: p.text().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type User = InferEntity<typeof UserEntity>;
