import { createInboxActivities } from '../../activities/inboxes.activities.ts';
import { createInboxPurgeService } from '../../domain/inbox-purges/inbox-purge.service.ts';
import { overduePurges } from '../../domain/inboxes/inbox-purge.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const inboxPurgesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox, storage, services: { events } }) =>
      createInboxActivities({ purges: createInboxPurgeService({ database, outbox, storage, events }) }),
  },
  maintenance: ({ database }) => ({ overdue: [overduePurges(database)] }),
};
