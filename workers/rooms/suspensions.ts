import { createHeldWorkActivities } from '../../activities/held-work.activities.ts';
import { createHeldWorkService } from '../../domain/administration/held-work.service.ts';
import { overdueSuspensions } from '../../domain/suspensions/suspension-run.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const suspensionsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox, services: { events, drafts } }) =>
      createHeldWorkActivities({ heldWork: createHeldWorkService({ database, outbox, events, drafts }) }),
  },
  maintenance: ({ database }) => ({ overdue: [overdueSuspensions(database)] }),
};
