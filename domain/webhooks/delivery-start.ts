import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { PRIORITY, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import {
  DELIVER_WEBHOOK,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';

export interface DeliveryStartInput {
  id: string;
  episode: number;
  organizationId: string;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  /** Null for organization-wide events. */
  inboxId: string | null;
}

/** Operators find the run by endpoint (`ResourceId`) and event (`RelatedId`). */
export function buildDeliveryStart(delivery: DeliveryStartInput): StartCommand {
  return {
    workflowType: DELIVER_WEBHOOK,
    workflowId: deliverWebhookWorkflowId(delivery.id, delivery.episode),
    taskQueue: WEBHOOKS_QUEUE,
    input: { deliveryId: delivery.id, episode: delivery.episode },
    // A hanging endpoint must not delay deliveries to others.
    priority: { priorityKey: PRIORITY.default, fairnessKey: delivery.endpointId },
    searchAttributes: {
      OrgId: delivery.organizationId,
      EnvId: delivery.environmentId,
      ...(delivery.inboxId ? { InboxId: delivery.inboxId } : {}),
      ResourceId: delivery.endpointId,
      RelatedId: delivery.eventId,
      Stage: 'delivering',
    },
    summary: `${delivery.eventType} → ${delivery.endpointId}`,
  };
}
