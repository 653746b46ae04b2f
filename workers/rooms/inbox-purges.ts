import { createInboxActivities } from '../../activities/inboxes.activities.ts';
import { createPurgeService } from '../../domain/inbox-purges/purge.service.ts';
import { overduePurges } from '../../domain/inboxes/inbox-purge.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const inboxPurgesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox, storage, services: { events } }) =>
      createInboxActivities({ purges: createPurgeService({ database, outbox, storage, events }) }),
  },
  maintenance: ({ database }) => ({ overdue: [overduePurges(database)] }),
};
