import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { PRIORITY, type Priority, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import {
  DELIVER_WEBHOOK,
  type DeliverWebhookInput,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { Event } from '../events/event.entity.ts';
import type { Subscriber } from '../events/event.service.ts';
import { type HoldReason, type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';

/** An event and an endpoint that receives it. */
export interface NewDelivery {
  event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>;
  endpoint: Subscriber;
}

/**
 * Creates deliveries in one statement and starts their runs. A delivery is `held` instead if its endpoint is disabled,
 * while the organization is closed or the event's owner suspended, if earlier deliveries wait until the endpoint answers
 * again, or while deliveries are switched off.
 */
export async function addDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  added: readonly NewDelivery[],
  priority: Priority = PRIORITY.default,
): Promise<WebhookDelivery[]> {
  if (added.length === 0) return [];
  const eventById = new Map(added.map(({ event }) => [event.id, event]));
  const deliveries = await transaction.db
    .insertInto('webhook_deliveries')
    .values(added.map(toRow))
    .returning(columnsOf(WebhookDeliveryEntity))
    .execute();
  for (const delivery of deliveries) {
    const event = eventById.get(delivery.eventId);
    if (!event || delivery.status === 'held') continue;
    const { environmentId, inboxId, type: eventType } = event;
    const start = buildDeliveryStart({ ...delivery, environmentId, inboxId, eventType }, priority);
    outbox.enqueue(transaction, delivery.organizationId, { start });
  }
  return deliveries;
}

function toRow({ event, endpoint }: NewDelivery) {
  const heldFor = findHoldReason(endpoint);
  const held = heldFor !== undefined;
  const now = new Date();
  return {
    id: newId('webhookDelivery'),
    org_id: event.organizationId,
    endpoint_id: endpoint.id,
    event_id: event.id,
    status: held ? ('held' as const) : ('pending' as const),
    held_for: heldFor ?? null,
    next_attempt_at: held ? null : now,
    created_at: now,
  };
}

/** Undefined: the delivery starts. Null: it waits until the endpoint is enabled. */
function findHoldReason({
  disabled,
  ownerHold,
  isHolding,
  isSwitchedOff,
}: Omit<Subscriber, 'id'>): HoldReason | null | undefined {
  if (disabled) return null;
  if (ownerHold) return ownerHold;
  if (isHolding) return 'endpoint_failing';
  return isSwitchedOff ? 'switched_off' : undefined;
}

export interface DeliveryStartInput {
  id: string;
  generation: number;
  organizationId: string;
  environmentId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  /** Null for organization-wide events. */
  inboxId: string | null;
}

/** Operators find the run by endpoint (`ResourceId`) and event (`RelatedId`). */
export function buildDeliveryStart(
  delivery: DeliveryStartInput,
  priorityKey: Priority = PRIORITY.default,
): StartCommand {
  return {
    workflowType: DELIVER_WEBHOOK,
    workflowId: deliverWebhookWorkflowId(delivery.id, delivery.generation),
    taskQueue: WEBHOOKS_QUEUE,
    input: {
      deliveryId: delivery.id,
      generation: delivery.generation,
      endpointId: delivery.endpointId,
      attemptsLocally: true,
    } satisfies DeliverWebhookInput,
    // An endpoint that hangs delays no other, and an organization with many endpoints has one share.
    priority: {
      priorityKey,
      fairnessKey: delivery.endpointId,
      fairnessHolder: delivery.organizationId,
    },
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
