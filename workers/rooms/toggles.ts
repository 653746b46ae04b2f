import { createToggleActivities } from '../../activities/toggles.activities.ts';
import { releaseSwitchedOffSends } from '../../domain/outbound/held-sends.ts';
import { releaseSwitchedOffDeliveries } from '../../domain/webhooks/release-held-deliveries.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const togglesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox }) => {
      // Backpressure: the next batch waits until Temporal has accepted this one.
      const inTurn = (release: () => Promise<number>) => async () => {
        const released = await release();
        await outbox.drain();
        return released;
      };
      return createToggleActivities({
        releases: {
          sending: inTurn(() =>
            database.systemTransaction((transaction) => releaseSwitchedOffSends(transaction, outbox)),
          ),
          webhook_deliveries: inTurn(() => releaseSwitchedOffDeliveries(database, outbox)),
        },
      });
    },
  },
};
