import { createAnnouncementActivities } from '../../activities/announcements.activities.ts';
import {
  createAnnouncementMailing,
  overdueAnnouncements,
} from '../../domain/announcements/mail-announcement.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const announcementsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, outbox, services }) =>
      createAnnouncementActivities({
        mailing: createAnnouncementMailing({ database, outbox, notifications: services.personNotifications }),
      }),
  },
  maintenance: ({ database }) => ({ overdue: [overdueAnnouncements(database)] }),
};
