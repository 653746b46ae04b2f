import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  SEND_NOTIFICATION,
  sendNotificationWorkflowId,
} from '../../workflows/notifications/send-notification.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Notification } from './notification.entity.ts';
import { isSecurityNotice } from './templates.ts';

type StartedNotification = Pick<Notification, 'id' | 'organizationId' | 'userId' | 'template'> & {
  /** Default: the first. */
  episode?: number;
};

/** Starts the run that sends a notification. */
export function buildNotificationStart({
  id,
  organizationId,
  userId,
  template,
  episode = 1,
}: StartedNotification): StartCommand {
  return {
    workflowType: SEND_NOTIFICATION,
    workflowId: sendNotificationWorkflowId(id, episode),
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
