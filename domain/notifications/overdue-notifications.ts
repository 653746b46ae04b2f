import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { NotificationSendingService } from './notification-sending.service.ts';
import { buildNotificationStart } from './notification-start.ts';

/** System emails whose next attempt is overdue. If an operator stopped the run, the email is marked as failed. */
export function overdueNotifications(
  database: Database,
  sending: Pick<NotificationSendingService, 'stop'>,
): OverdueSource {
  return {
    name: 'notifications',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildNotificationStart>[0]>(database, {
        table: 'notifications',
        overdue: `status in ('pending', 'sending') and next_attempt_at < now() - interval '5 minutes'`,
        columns: 'id, org_id as "organizationId", user_id as "userId", template, episode',
        limit,
      });
      return rows.map((row) => ({
        start: buildNotificationStart(row),
        whenStopped: async () => {
          await sending.stop(row.id);
        },
      }));
    },
  };
}
