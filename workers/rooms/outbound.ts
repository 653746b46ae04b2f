import { createOutboundActivities } from '../../activities/outbound.activities.ts';
import { releaseAllHeldSends, releaseAllSwitchedOffSends } from '../../domain/outbound/held-sends.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const outboundRoom: Room = {
  activities: {
    [OUTBOUND_QUEUE]: async ({ database, storage, mailTransport, simulator, dkimKeys, services, logger }) =>
      createOutboundActivities({
        database,
        storage,
        mailTransport: mailTransport(),
        simulator: simulator(),
        dkimKeys: await dkimKeys(),
        returnPaths: services.returnPaths,
        outcomes: services.outcomes,
        events: services.events,
        logger,
      }),
  },
  maintenance: ({ database, outbox, services }) => ({
    overdue: [overdueMessages(database, services.outcomes)],
    sweeps: {
      releasedSends: () => releaseAllHeldSends(database, outbox),
      switchedOffSends: () => releaseAllSwitchedOffSends(database, outbox),
    },
  }),
};
