import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  MAIL_ANNOUNCEMENT,
  mailAnnouncementWorkflowId,
} from '../../workflows/announcements/mail-announcement.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Announcement } from './announcement.entity.ts';

export function buildAnnouncementStart({
  id,
  startsAt,
}: Pick<Announcement, 'id' | 'startsAt'>): StartCommand {
  return {
    workflowType: MAIL_ANNOUNCEMENT,
    workflowId: mailAnnouncementWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.notification, fairnessKey: id },
    input: { announcementId: id, startsAt: startsAt.toISOString() },
    searchAttributes: { ResourceId: id, Stage: 'mailing' },
    summary: `Mail ${id} to owners`,
  };
}
