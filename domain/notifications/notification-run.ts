import type { Database } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import {
  SEND_NOTIFICATION,
  sendNotificationWorkflowId,
} from '../../workflows/notifications/send-notification.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Notification } from './notification.entity.ts';
import { isSecurityNotice } from './templates.ts';

type StartedNotification = Pick<Notification, 'id' | 'organizationId' | 'userId' | 'template'> & {
  /** Default: the first. */
  generation?: number;
};

/** Starts the run that sends a notification. */
export function buildNotificationStart({
  id,
  organizationId,
  userId,
  template,
  generation = 1,
}: StartedNotification): StartCommand {
  return {
    workflowType: SEND_NOTIFICATION,
    workflowId: sendNotificationWorkflowId(id, generation),
    taskQueue: OUTBOUND_QUEUE,
    priority: {
      priorityKey: isSecurityNotice(template) ? PRIORITY.urgent : PRIORITY.notification,
      // Emails about a person's own account share one turn per person.
      fairnessKey: organizationId ?? userId ?? id,
    },
    input: { notificationId: id },
    searchAttributes: {
      ...(organizationId === null ? {} : { OrgId: organizationId }),
      ResourceId: id,
      Stage: 'sending',
    },
    summary: `${template} → ${id}`,
  };
}

/** System emails whose next attempt is overdue. If an operator stopped the run, the email is marked as failed. */
export function overdueNotifications(
  { db }: Database,
  sending: { stop(notificationId: string): Promise<string> },
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
        .returning(['id', 'org_id as organizationId', 'user_id as userId', 'template', 'generation'])
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
