import type { Updateable } from 'kysely';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createAttemptShares } from '../../domain/webhooks/attempt-slots.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from '../../domain/webhooks/delivery.entity.ts';
import {
  createDeliveryService,
  type DeliveryService,
  type DeliveryServiceOptions,
} from '../../domain/webhooks/delivery.service.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from '../../domain/webhooks/endpoint.entity.ts';
import { secretContext } from '../../domain/webhooks/endpoint-secret.ts';
import { createProbeService, type ProbeService } from '../../domain/webhooks/probe.service.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Tables } from '../../platform/database/tables.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { createOrganization, type TestOrganization } from './organizations.ts';
import { recordingOutbox } from './test-app.ts';

const secretBox = createSecretBox(Buffer.alloc(32, 7).toString('base64'));

export const httpAnswer = (status: number): EgressResult => ({
  kind: 'response',
  status,
  body: '',
  durationMs: 1,
});

type WorkerOptions = Partial<
  Pick<DeliveryServiceOptions, 'timeoutMs' | 'slotWaitMs' | 'shares' | 'secretBox' | 'quota'>
>;

export interface TestDeliveries {
  organization: TestOrganization;
  endpointId: string;
  deliveryIds: string[];
  commands: OutboxCommand[];
  /** Creates a worker. Several workers share only the database. */
  worker(answer: () => Promise<EgressResult>, options?: WorkerOptions): DeliveryService;
  /** Creates the service behind the probe's activities. */
  probe(answer: () => Promise<EgressResult>, options?: WorkerOptions): ProbeService;
  outbox: Outbox;
  endpoint(): Promise<WebhookEndpoint>;
  deliveries(): Promise<WebhookDelivery[]>;
}

/** Creates an organization with an endpoint and pending deliveries. The `answer` of a worker simulates the receiver. */
export async function arrangeDeliveries(
  database: Database,
  count: number,
  endpoint: Updateable<Tables['webhook_endpoints']> = {},
): Promise<TestDeliveries> {
  const organization = await createOrganization(database);
  const { organizationId, productionEnvironmentId: environmentId } = organization;
  const { outbox, commands } = recordingOutbox();
  const endpointId = newId('webhookEndpoint');
  const deliveryIds = Array.from({ length: count }, () => newId('webhookDelivery'));
  await database.systemTransaction(async ({ db }) => {
    const eventId = newId('event');
    await db
      .insertInto('webhook_endpoints')
      .values({
        id: endpointId,
        org_id: organizationId,
        env_id: environmentId,
        url: 'https://receiver.example/hook',
        events: ['message.received'],
        secret: secretBox.seal(`whsec_${Buffer.alloc(32, 9).toString('base64')}`, secretContext(endpointId)),
        ...endpoint,
      })
      .execute();
    await db
      .insertInto('events')
      .values({
        id: eventId,
        org_id: organizationId,
        env_id: environmentId,
        type: 'message.received',
        data: json({}),
      })
      .execute();
    for (const id of deliveryIds)
      await db
        .insertInto('webhook_deliveries')
        .values({
          id,
          org_id: organizationId,
          endpoint_id: endpointId,
          event_id: eventId,
          status: 'pending',
          next_attempt_at: new Date(),
        })
        .execute();
  });
  const serviceOptions = (answer: () => Promise<EgressResult>, options: WorkerOptions) => ({
    database,
    outbox,
    egress: { post: answer },
    secretBox,
    notifications: createNotificationService({ outbox }),
    timeoutMs: 15_000,
    shares: createAttemptShares(50),
    random: () => 0.5,
    ...options,
  });
  return {
    organization,
    outbox,
    endpointId,
    deliveryIds,
    commands,
    worker: (answer, options = {}) => createDeliveryService(serviceOptions(answer, options)),
    probe: (answer, options = {}) => createProbeService(serviceOptions(answer, options)),
    endpoint: () =>
      database.db
        .selectFrom('webhook_endpoints')
        .select(columnsOf(WebhookEndpointEntity))
        .where('id', '=', endpointId)
        .executeTakeFirstOrThrow(),
    deliveries: () =>
      database.db
        .selectFrom('webhook_deliveries')
        .select(columnsOf(WebhookDeliveryEntity))
        .where('endpoint_id', '=', endpointId)
        .orderBy('id')
        .execute(),
  };
}
