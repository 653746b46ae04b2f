import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { IS_SUSPENDED, JOIN_STATUSES } from './delivery-rows.ts';
import { RELEASE_BATCH_SIZE } from './release-held-deliveries.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/**
 * Restarts deliveries of an organization that no suspension holds any longer, oldest first, at most
 * {@link RELEASE_BATCH_SIZE}. Those of a disabled endpoint are then held for it.
 *
 * @returns how many were restarted.
 */
export function releaseSuspendedDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  organizationId: string,
): Promise<number> {
  const selection = sql`select d.id from webhook_deliveries d join events v on v.id = d.event_id ${JOIN_STATUSES}
      where d.org_id = ${organizationId} and d.status = 'held' and d.held_for = 'suspension' and not ${IS_SUSPENDED}
      order by d.id limit ${RELEASE_BATCH_SIZE} for update of d skip locked`;
  return restartDeliveries(transaction, outbox, { selection, mode: 'release' });
}
