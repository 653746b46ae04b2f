import { createNotificationActivities } from '../../activities/notifications.activities.ts';
import { deleteExpiredLinkSecrets } from '../../domain/notifications/link-lifetimes.ts';
import { overdueNotifications } from '../../domain/notifications/notification-run.ts';
import {
  createNotificationSendingService,
  stopNotification,
} from '../../domain/notifications/notification-sending.service.ts';
import { bounceDomain, systemMailFrom } from '../../platform/config.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const notificationsRoom: Room = {
  activities: {
    [OUTBOUND_QUEUE]: async ({ config, database, mailTransport, dkimKeys, services }) =>
      createNotificationActivities({
        notifications: createNotificationSendingService({
          database,
          mailTransport: mailTransport(),
          dkimKeys: await dkimKeys(),
          secretBox: services.secretBox,
          publicUrl: config.PUBLIC_URL,
          systemAddress: systemMailFrom(config),
          returnPath: `notifications@${bounceDomain(config)}`,
        }),
      }),
  },
  maintenance: ({ database }) => ({
    overdue: [overdueNotifications(database, { stop: (id) => stopNotification(database, id) })],
    sweeps: { expiredEmailLinks: () => deleteExpiredLinkSecrets(database) },
  }),
};
