import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/**
 * Removes the stored responses that show what is being deleted. The keys stay: a repeated request must not create it a second
 * time.
 */
export async function forgetResponses(em: EntityManager, resourceIds: readonly string[]): Promise<void> {
  if (resourceIds.length === 0) return;
  await em.execute(sql`
    update idempotency_keys set body = null where resource_id in (${resourceIds}) and body is not null`);
}
