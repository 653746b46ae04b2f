import { expect, test } from '@jest/globals';
import { buildScheduledSendStart } from '../../domain/drafts/draft-schedule.ts';
import { buildReceiveStart } from '../../domain/inbound/receipt.service.ts';
import { buildNotificationStart } from '../../domain/notifications/notification-run.ts';
import { buildSendStart, buildTrackingStart } from '../../domain/outbound/workflow-commands.ts';
import { buildDeliveryStart } from '../../domain/webhooks/add-deliveries.ts';
import { buildProbeStart } from '../../domain/webhooks/endpoint-health.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { PRIORITY } from '../../workflows/task-queues.contract.ts';

const place = { organizationId: 'org_1', environmentId: 'env_1', inboxId: 'inb_1' };
const message = { ...place, id: 'msg_1', threadId: 'thr_1' };
const draft = { ...place, id: 'drf_1', scheduleVersion: 1, version: 1 };
const receipt = { ...place, id: 'rcp_1', messageId: 'msg_1', kind: 'mail' as const, sizeBytes: 1 };
const delivery = {
  ...place,
  id: 'whd_1',
  generation: 1,
  endpointId: 'whe_1',
  eventId: 'evt_1',
  eventType: 'e',
};
const notification = { id: 'ntf_1', organizationId: 'org_1' };

test.each<[string, StartCommand, string, number, string]>([
  ['a send', buildSendStart(message), 'outbound', 1, 'org_1'],
  ['the send of a scheduled draft', buildSendStart(message, PRIORITY.scheduled), 'outbound', 2, 'org_1'],
  ['the wait of a scheduled draft', buildScheduledSendStart(draft, new Date()), 'outbound', 2, 'org_1'],
  ['delivery tracking', buildTrackingStart(message, 1), 'outbound', 3, 'org_1'],
  [
    'a security notice',
    buildNotificationStart({ userId: null, ...notification, template: 'export-ready' }),
    'outbound',
    1,
    'org_1',
  ],
  [
    'another notification',
    buildNotificationStart({ userId: null, ...notification, template: 'usage-warning' }),
    'outbound',
    4,
    'org_1',
  ],
  ['a received message', buildReceiveStart(receipt), 'inbound', 3, 'org_1'],
  [
    'the probe of a failing endpoint',
    buildProbeStart({ ...place, id: 'whe_1', probeGeneration: 1 }),
    'webhooks',
    3,
    'org_1',
  ],
  ['a webhook delivery', buildDeliveryStart(delivery), 'webhooks', 3, delivery.endpointId],
  ['a replayed delivery', buildDeliveryStart(delivery, PRIORITY.bulk), 'webhooks', 5, delivery.endpointId],
])('%s has its queue, priority and fairness key', (_name, start, taskQueue, priorityKey, fairnessKey) => {
  expect(start).toMatchObject({ taskQueue, priority: { priorityKey, fairnessKey } });
});
