import { createStoredObjectActivities } from '../../activities/stored-objects.activities.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const storedObjectsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, storage }) => createStoredObjectActivities({ database, storage }),
  },
  maintenance: ({ database, storage }) => ({
    sweeps: {
      discardedObjects: () => sweepObjects(database, storage),
    },
  }),
};
