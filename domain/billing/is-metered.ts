import type { Db } from '../../platform/database/tables.ts';
import type { UsageCounter } from '../usage/counters.ts';
import { METERED_COUNTERS } from './metered-counters.ts';

/** Whether use beyond the limit of the organization's tier is billed. */
export async function isMetered(db: Db, organizationId: string, counter: UsageCounter): Promise<boolean> {
  const metered = METERED_COUNTERS.find((known) => known === counter);
  if (!metered) return false;
  const meter = await db
    .selectFrom('billing_meters')
    .select('counter')
    .where('org_id', '=', organizationId)
    .where('counter', '=', metered)
    .where('ended_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return meter !== undefined;
}
