import { findRow, type RowReader } from '../../platform/database/find-rows.ts';
import type { UsageCounter } from '../usage/counters.ts';
import { BillingMeterEntity } from './billing-meter.entity.ts';
import { METERED_COUNTERS } from './metered-counters.ts';

/** Whether use beyond the limit of the organization's tier is billed. */
export async function isMetered(
  reader: RowReader,
  organizationId: string,
  counter: UsageCounter,
): Promise<boolean> {
  const metered = METERED_COUNTERS.find((known) => known === counter);
  if (!metered) return false;
  const where = { organizationId, counter: metered, endedAt: null };
  return (await findRow(reader, BillingMeterEntity, { where })) !== undefined;
}
