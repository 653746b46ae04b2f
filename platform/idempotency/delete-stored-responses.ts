import { anyOf } from '../database/any-of.ts';
import type { Db } from '../database/tables.ts';

/**
 * Removes the stored responses that show what is being deleted. The keys stay: a repeated request must not create it a second
 * time.
 */
export async function deleteStoredResponses(db: Db, resourceIds: readonly string[]): Promise<void> {
  if (resourceIds.length === 0) return;
  await db
    .updateTable('idempotency_keys')
    .set({ body: null })
    .where('resource_id', '=', anyOf(resourceIds))
    .where('body', 'is not', null)
    .execute();
}
