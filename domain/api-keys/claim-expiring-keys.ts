import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';

export interface ExpiringKey {
  id: string;
  organizationId: string;
  name: string;
  lastFour: string;
  expiresAt: Date;
  createdByUserId: string | null;
}

const NOTICE_DAYS = 7;
/** A key with a shorter lifetime was created for a task, and needs no notice. */
const MIN_LIFETIME_DAYS = 14;

/**
 * Returns keys that expire within a week and marks them as notified, once for each expiry. Runs in the caller's transaction,
 * which creates the emails.
 */
export function claimExpiringKeys(db: Db, limit: number): Promise<ExpiringKey[]> {
  const expiring = db
    .selectFrom('api_keys as k')
    .innerJoin('organizations as o', 'o.id', 'k.org_id')
    .select('k.id')
    .where('o.deleted_at', 'is', null)
    .where('k.revoked_at', 'is', null)
    .where('k.expiry_notified_at', 'is', null)
    .where('k.expires_at', '>', sql<Date>`now()`)
    .where('k.expires_at', '<=', sql<Date>`now() + ${NOTICE_DAYS} * interval '1 day'`)
    .where('k.expires_at', '>=', sql<Date>`k.created_at + ${MIN_LIFETIME_DAYS} * interval '1 day'`)
    .orderBy('k.expires_at')
    .limit(limit)
    .forUpdate('k')
    .skipLocked();
  return db
    .updateTable('api_keys')
    .set({ expiry_notified_at: sql`now()` })
    .where('id', '=', anyLocked(expiring))
    .returning([
      'id',
      'org_id as organizationId',
      'name',
      'last_four as lastFour',
      'expires_at as expiresAt',
      'created_by_user_id as createdByUserId',
    ])
    .$narrowType<{ expiresAt: Date }>()
    .execute();
}
