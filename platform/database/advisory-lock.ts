import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** Takes the advisory lock of a key and holds it until the transaction ends. The first part of a key names its use. */
export async function lockKey(em: EntityManager, ...key: [use: string, ...parts: string[]]): Promise<void> {
  await em.execute(sql`select pg_advisory_xact_lock(hashtextextended(${JSON.stringify(key)}, 0))`);
}

/** As {@link lockKey}, but any number of transactions have it together; it excludes only those that hold the whole lock. */
export async function lockKeyShared(
  em: EntityManager,
  ...key: [use: string, ...parts: string[]]
): Promise<void> {
  await em.execute(sql`select pg_advisory_xact_lock_shared(hashtextextended(${JSON.stringify(key)}, 0))`);
}
