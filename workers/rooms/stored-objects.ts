import { createStorageActivities } from '../../activities/stored-objects.activities.ts';
import { removeUnusedUploads, sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const storedObjectsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, storage }) => createStorageActivities({ database, storage }),
  },
  maintenance: ({ database, storage }) => ({
    sweeps: {
      unusedUploads: () => removeUnusedUploads(database),
      discardedObjects: () => sweepObjects(database, storage),
    },
  }),
};
