import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { NotificationSendingService } from './notification-sending.service.ts';
import { buildNotificationStart } from './notification-start.ts';

/** System emails whose next attempt is overdue. If an operator stopped the run, the email is marked as failed. */
export function overdueNotifications(
  { db }: Database,
  sending: Pick<NotificationSendingService, 'stop'>,
): OverdueSource {
  return {
    name: 'notifications',
    async take(limit) {
      const overdue = db
        .selectFrom('notifications')
        .select('id')
        .where('status', 'in', ['pending', 'sending'])
        .where('next_attempt_at', '<', minutesAgo(5));
      const rows = await db
        .updateTable('notifications')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId', 'user_id as userId', 'template', 'episode'])
        .execute();
      return rows.map((row) => ({
        start: buildNotificationStart(row),
        whenStopped: async () => {
          await sending.stop(row.id);
        },
      }));
    },
  };
}
