import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import {
  DELIVER_WEBHOOK,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';

export interface DeliveryStart {
  id: string;
  episode: number;
  organizationId: string;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  /** Empty for events of the organization as a whole. */
  inboxId: string | null;
}

/** The start of a delivery's run; an operator finds it by endpoint (`ResourceId`) and event (`RelatedId`). */
export function startOfDelivery(delivery: DeliveryStart): StartCommand {
  return {
    workflowType: DELIVER_WEBHOOK,
    workflowId: deliverWebhookWorkflowId(delivery.id, delivery.episode),
    taskQueue: WEBHOOKS_QUEUE,
    input: { deliveryId: delivery.id, episode: delivery.episode },
    // An endpoint that hangs must not hold up the others.
    fairnessKey: delivery.endpointId,
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
