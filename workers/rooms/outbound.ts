import { createOutboundActivities } from '../../activities/outbound.activities.ts';
import { createDispatchService } from '../../domain/outbound/dispatch.service.ts';
import { releaseAllHeldSends } from '../../domain/outbound/held/held-sends.ts';
import { releaseAllSwitchedOffSends } from '../../domain/outbound/held/switched-off-sends.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { createTransmissionService } from '../../domain/outbound/transmission.service.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const dispatchService = ({ database, services: { outcomes, events } }: WorkerDependencies) =>
  createDispatchService({ database, outcomes, events });

export const outboundRoom: Room = {
  activities: {
    [OUTBOUND_QUEUE]: async (dependencies) =>
      createOutboundActivities({
        dispatch: dispatchService(dependencies),
        transmissions: createTransmissionService({
          database: dependencies.database,
          storage: dependencies.storage,
          mailTransport: dependencies.mailTransport(),
          simulator: dependencies.simulator(),
          returnPaths: dependencies.services.returnPaths,
          dkimKeys: await dependencies.dkimKeys(),
          outcomes: dependencies.services.outcomes,
        }),
        logger: dependencies.logger,
      }),
  },
  maintenance: (dependencies) => ({
    overdue: [overdueMessages(dependencies.database, dispatchService(dependencies))],
    sweeps: {
      releasedSends: () => releaseAllHeldSends(dependencies.database, dependencies.outbox),
      switchedOffSends: () => releaseAllSwitchedOffSends(dependencies.database, dependencies.outbox),
    },
  }),
};
