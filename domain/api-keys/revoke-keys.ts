import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Permission } from '../identity/permissions.ts';

/** Revokes one key in the caller's transaction. @returns false if it is revoked already. */
export async function revokeKey(em: EntityManager, keyId: string): Promise<boolean> {
  const revoked = await em.execute<object[]>(
    sql`update api_keys set revoked_at = now() where id = ${keyId} and revoked_at is null returning id`,
  );
  return revoked.length > 0;
}

/**
 * Revokes the keys that a key created, and those that they created, in the caller's transaction. `union` instead of
 * `union all` ends the recursion even in a cycle.
 */
export async function revokeDescendants(
  em: EntityManager,
  organizationId: string,
  keyId: string,
): Promise<void> {
  await em.execute(sql`
    with recursive descendants as (
      select id from api_keys where org_id = ${organizationId} and created_by_key_id = ${keyId}
      union
      select k.id from api_keys k join descendants d on k.created_by_key_id = d.id
      where k.org_id = ${organizationId})
    update api_keys set revoked_at = now() where id in (select id from descendants) and revoked_at is null`);
}

/**
 * Revokes the keys that a person created, also through other keys, in the caller's transaction. Returns their number.
 */
export async function revokeKeysOfUser(
  em: EntityManager,
  organizationId: string,
  userId: string,
): Promise<number> {
  for (let total = 0; ; ) {
    // Waits for transactions in which one of the keys creates another one, which the next round then finds.
    const revoked = await em.execute<object[]>(sql`
      update api_keys set revoked_at = now()
      where org_id = ${organizationId} and created_by_user_id = ${userId} and revoked_at is null returning id`);
    if (revoked.length === 0) return total;
    total += revoked.length;
  }
}

/**
 * Takes from the keys that a person created, also through other keys, the permissions that are not among the given ones,
 * in the caller's transaction. Returns the number of keys that lost some.
 */
export async function limitKeysOfUser(
  em: EntityManager,
  { organizationId, userId, permissions }: LimitedKeys,
): Promise<number> {
  const allowed = sql`array[${[...permissions]}]::text[]`;
  for (let total = 0; ; ) {
    // As in the revocation: keys that one of them creates meanwhile.
    const limited = await em.execute<object[]>(sql`
      update api_keys set permissions = array(
        select name from unnest(permissions) with ordinality as p (name, position)
        where name = any (${allowed}) order by position)
      where org_id = ${organizationId} and created_by_user_id = ${userId} and revoked_at is null
        and not permissions <@ ${allowed} returning id`);
    if (limited.length === 0) return total;
    total += limited.length;
  }
}

export interface LimitedKeys {
  organizationId: string;
  userId: string;
  permissions: readonly Permission[];
}
