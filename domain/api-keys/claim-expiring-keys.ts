import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

export interface ExpiringKey {
  id: string;
  organizationId: string;
  name: string;
  lastFour: string;
  expiresAt: Date;
  createdByUserId: string | null;
}

const NOTICE_DAYS = 7;
/** A key that lives shorter was made for a task, and needs no notice. */
const MIN_LIFETIME_DAYS = 14;

/**
 * Returns keys that expire within a week and marks them as notified, each once for each expiry. Runs in the caller's
 * transaction, which creates the emails.
 */
export async function claimExpiringKeys(em: EntityManager, limit: number): Promise<ExpiringKey[]> {
  const keys = await em.execute<(Omit<ExpiringKey, 'expiresAt'> & { expiresAt: string })[]>(sql`
    update api_keys set expiry_notified_at = now() where id = any(array(
      select k.id from api_keys k join organizations o on o.id = k.org_id and o.deleted_at is null
      where k.revoked_at is null and k.expiry_notified_at is null
        and k.expires_at > now() and k.expires_at <= now() + ${NOTICE_DAYS} * interval '1 day'
        and k.expires_at >= k.created_at + ${MIN_LIFETIME_DAYS} * interval '1 day'
      order by k.expires_at limit ${limit} for update of k skip locked))
    returning id, org_id as "organizationId", name, last_four as "lastFour", expires_at as "expiresAt",
      created_by_user_id as "createdByUserId"`);
  return keys.map((key) => ({ ...key, expiresAt: new Date(key.expiresAt) }));
}
