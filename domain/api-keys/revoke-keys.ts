import { type SqlBool, sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import type { Permission } from '../identity/permissions.ts';

/** Revokes one key in the caller's transaction. @returns false if it is revoked already. */
export async function revokeKey(db: Db, keyId: string): Promise<boolean> {
  const revoked = await db
    .updateTable('api_keys')
    .set({ revoked_at: sql`now()` })
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return revoked !== undefined;
}

/**
 * Revokes the keys that a key created, directly or through other keys, in the caller's transaction. `union` instead of
 * `union all` ends the recursion even in a cycle.
 */
export async function revokeDescendants(db: Db, organizationId: string, keyId: string): Promise<void> {
  await db
    .withRecursive('descendants', (cte) =>
      cte
        .selectFrom('api_keys')
        .select('id')
        .where('org_id', '=', organizationId)
        .where('created_by_key_id', '=', keyId)
        .union(
          cte
            .selectFrom('api_keys as k')
            .innerJoin('descendants as d', 'd.id', 'k.created_by_key_id')
            .select('k.id')
            .where('k.org_id', '=', organizationId),
        ),
    )
    .updateTable('api_keys')
    .set({ revoked_at: sql`now()` })
    .where('id', 'in', (eb) => eb.selectFrom('descendants').select('id'))
    .where('revoked_at', 'is', null)
    .execute();
}

/**
 * Revokes the keys that a person created, directly or through other keys, in the caller's transaction. Returns their number.
 */
export async function revokeKeysOfUser(db: Db, organizationId: string, userId: string): Promise<number> {
  for (let total = 0; ; ) {
    // The update waits for transactions in which one of the keys creates another key, which the next round then finds.
    const revoked = await db
      .updateTable('api_keys')
      .set({ revoked_at: sql`now()` })
      .where('org_id', '=', organizationId)
      .where('created_by_user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .returning('id')
      .execute();
    if (revoked.length === 0) return total;
    total += revoked.length;
  }
}

/**
 * Removes all permissions except the given ones from the keys that a person created, directly or through other keys, in the
 * caller's transaction. Returns the number of keys that lost permissions.
 */
export async function limitKeysOfUser(
  db: Db,
  { organizationId, userId, permissions }: LimitedKeys,
): Promise<number> {
  const allowed = sql`${permissions}::text[]`;
  for (let total = 0; ; ) {
    // As in the revocation, the next round finds keys that one of the keys creates meanwhile.
    const limited = await db
      .updateTable('api_keys')
      .set({
        permissions: sql<Permission[]>`array(
          select name from unnest(permissions) with ordinality as p (name, position)
          where name = any (${allowed}) order by position)`,
      })
      .where('org_id', '=', organizationId)
      .where('created_by_user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .where(sql<SqlBool>`not permissions <@ ${allowed}`)
      .returning('id')
      .execute();
    if (limited.length === 0) return total;
    total += limited.length;
  }
}

export interface LimitedKeys {
  organizationId: string;
  userId: string;
  permissions: readonly Permission[];
}
