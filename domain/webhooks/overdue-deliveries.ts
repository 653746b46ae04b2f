import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { DeliveryService } from './delivery.service.ts';
import { buildDeliveryStart, type DeliveryStartInput } from './delivery-start.ts';

/** Deliveries whose next attempt is overdue. If an operator stopped the run, the delivery is canceled. */
export function overdueDeliveries(
  database: Database,
  deliveries: Pick<DeliveryService, 'cancel'>,
): OverdueSource {
  return {
    name: 'deliveries',
    async take(limit) {
      const rows = await takeOverdue<DeliveryStartInput>(database, {
        table: 'webhook_deliveries',
        overdue: `status = 'pending' and next_attempt_at < now() - interval '2 minutes'`,
        columns: `id, episode, org_id as "organizationId", endpoint_id as "endpointId", event_id as "eventId",
          (select env_id from events where events.id = event_id) as "environmentId",
          (select inbox_id from events where events.id = event_id) as "inboxId",
          (select type from events where events.id = event_id) as "eventType"`,
        limit,
      });
      return rows.map((row) => ({
        start: buildDeliveryStart(row),
        whenStopped: async () => {
          await deliveries.cancel(row.id, row.episode);
        },
      }));
    },
  };
}
