import { createMessageActivities } from '../../activities/messages.activities.ts';
import { purgeEndedAlarms } from '../../domain/messages/injection-alarms.ts';
import { createThreadMoveService, overdueThreadMoves } from '../../domain/messages/thread-moves.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const messagesRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database }) =>
      createMessageActivities({ threadMoves: createThreadMoveService({ database }) }),
  },
  maintenance: ({ database }) => ({
    overdue: [overdueThreadMoves(database)],
    sweeps: { endedAlarms: () => purgeEndedAlarms(database) },
  }),
};
