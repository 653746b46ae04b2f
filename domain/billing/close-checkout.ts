import { sql } from '@mikro-orm/core';
import type Stripe from 'stripe';
import type { Database } from '../../platform/database/database.ts';
import { endSession } from './open-checkout.ts';

/** `none`: there was no session, or the organization is open again. `paid`: a person has to settle it. */
export type CheckoutClosing = 'none' | 'expired' | 'paid';

/**
 * Expires the open checkout of an organization that was closed: its owner could still pay for it. If it was paid already,
 * the read-back of its subscription reports the problem `organization_closed`.
 */
export function createCheckoutClosing({
  database,
  stripe,
}: {
  database: Database;
  stripe: Stripe;
}): (deletionId: string) => Promise<CheckoutClosing> {
  return async (deletionId) => {
    const [customer] = await database.query<{ organizationId: string; sessionId: string }>(sql`
      select c.org_id as "organizationId", c.checkout_session_id as "sessionId"
      from deletions d
      join organizations o on o.id = d.subject_id and o.deleted_at is not null
      join billing_customers c on c.org_id = o.id and c.checkout_session_id is not null
      where d.id = ${deletionId} and d.kind = 'organization'`);
    if (!customer) return 'none';
    const { organizationId, sessionId } = customer;
    const outcome = await endSession(stripe, sessionId);
    await database.query(sql`
      update billing_customers set checkout_session_id = null, updated_at = now()
      where org_id = ${organizationId} and checkout_session_id = ${sessionId} returning org_id`);
    return outcome;
  };
}
