import { createInboxActivities } from '../../activities/inboxes.activities.ts';
import { createPurgeService, overduePurges } from '../../domain/inboxes/purge.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const inboxesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database }) =>
      createInboxActivities({ purges: createPurgeService({ database }) }),
  },
  maintenance: ({ database }) => ({ overdue: [overduePurges(database)] }),
};
