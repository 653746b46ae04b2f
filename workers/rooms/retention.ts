import { createRetentionActivities } from '../../activities/retention.activities.ts';
import { createExpiredMailService } from '../../domain/retention/expired-mail.service.ts';
import { createRetentionService } from '../../domain/retention/retention.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const retentionRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox, services: { notifications, events } }) =>
      createRetentionActivities({
        retention: createRetentionService({ database, outbox, notifications }),
        expiredMail: createExpiredMailService({ database, outbox, events }),
      }),
  },
};
