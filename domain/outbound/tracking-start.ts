import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { TRACK_DELIVERY, trackDeliveryWorkflowId } from '../../workflows/outbound/track-delivery.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Message } from '../messages/message.entity.ts';

/** Starts the wait for delivery reports of a sent message. */
export function buildTrackingStart(
  message: Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'>,
  openRecipients: number,
): StartCommand {
  return {
    workflowType: TRACK_DELIVERY,
    workflowId: trackDeliveryWorkflowId(message.id),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: message.organizationId },
    input: { messageId: message.id, openRecipients },
    searchAttributes: {
      OrgId: message.organizationId,
      EnvId: message.environmentId,
      InboxId: message.inboxId,
      ResourceId: message.id,
      RelatedId: message.threadId,
      Stage: 'awaiting_reports',
    },
    summary: `Track delivery of ${message.id}`,
  };
}
