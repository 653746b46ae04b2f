import { createInboxActivities } from '../../activities/inboxes.activities.ts';
import { overduePurges } from '../../domain/inbox-purges/overdue-purges.ts';
import { createPurgeService } from '../../domain/inbox-purges/purge.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const inboxPurgesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database }) =>
      createInboxActivities({ purges: createPurgeService({ database }) }),
  },
  maintenance: ({ database }) => ({ overdue: [overduePurges(database)] }),
};
