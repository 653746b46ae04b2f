import { createOutboundActivities } from '../../activities/outbound.activities.ts';
import { createDispatchService } from '../../domain/outbound/dispatch.service.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { createTransmissionService } from '../../domain/outbound/transmission.service.ts';
import { MAIL_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerParts } from '../room.ts';

const dispatchService = ({ database, services: { outcomes, events } }: WorkerParts) =>
  createDispatchService({ database, outcomes, events });

export const outboundRoom: Room = {
  activities: {
    [MAIL_QUEUE]: async (parts) =>
      createOutboundActivities({
        dispatch: dispatchService(parts),
        transmissions: createTransmissionService({
          database: parts.database,
          storage: parts.storage,
          mailTransport: parts.mailTransport(),
          simulator: parts.simulator(),
          returnPaths: parts.services.returnPaths,
          dkimKeys: await parts.dkimKeys(),
          outcomes: parts.services.outcomes,
        }),
      }),
  },
  maintenance: (parts) => ({ overdue: [overdueMessages(parts.database, dispatchService(parts))] }),
};
