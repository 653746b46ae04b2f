import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { BulkJobService } from '../../domain/webhooks/bulk-job.service.ts';
import type { DeliveryControlService } from '../../domain/webhooks/delivery-control.service.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  BulkJobRecord,
  DELIVERY_RESPONSE,
  DeliveryRecord,
  DeliverySummary,
  presentDelivery,
  presentDeliverySummary,
  presentJob,
} from './deliveries.schemas.ts';

const DeliveryParams = strictObject({ id: id('Delivery id (whd_…).') });
const JobParams = strictObject({ id: id('Job id (whj_…).') });

export interface DeliveryRoutesOptions {
  webhookDeliveries: DeliveryControlService;
  webhookJobs: BulkJobService;
}

export const deliveryRoutes =
  ({ webhookDeliveries, webhookJobs }: DeliveryRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/webhooks/deliveries/:id',
      {
        config: { permission: 'webhooks:read' },
        schema: {
          operationId: 'webhookDeliveries.get',
          summary: 'Get a delivery and its attempts',
          tags: ['Webhook deliveries'],
          params: DeliveryParams,
          response: { 200: ref(DeliveryRecord), ...problems() },
        },
      },
      async (request) => presentDelivery(await webhookDeliveries.get(request.scope, request.params.id)),
    );

    app.post(
      '/webhooks/deliveries/:id/retry',
      {
        config: { permission: 'webhooks:manage', ...DELIVERY_RESPONSE },
        schema: {
          operationId: 'webhookDeliveries.retry',
          summary: 'Retry a delivery now',
          description: 'The event id stays the same.',
          tags: ['Webhook deliveries'],
          params: DeliveryParams,
          response: { 202: ref(DeliverySummary), ...postProblems() },
        },
      },
      async (request, reply) => {
        const details = await webhookDeliveries.retry(request.scope, request.params.id);
        reply.code(202);
        return presentDeliverySummary(details);
      },
    );

    app.post(
      '/webhooks/deliveries/:id/cancel',
      {
        config: { permission: 'webhooks:manage', ...DELIVERY_RESPONSE },
        schema: {
          operationId: 'webhookDeliveries.cancel',
          summary: 'Cancel a pending or held delivery',
          tags: ['Webhook deliveries'],
          params: DeliveryParams,
          response: { 200: ref(DeliverySummary), ...postProblems() },
        },
      },
      async (request) =>
        presentDeliverySummary(await webhookDeliveries.cancel(request.scope, request.params.id)),
    );

    app.get(
      '/webhooks/jobs/:id',
      {
        config: { permission: 'webhooks:read' },
        schema: {
          operationId: 'webhookJobs.get',
          summary: 'Get the progress of a replay or cancellation job',
          tags: ['Webhook deliveries'],
          params: JobParams,
          response: { 200: ref(BulkJobRecord), ...problems() },
        },
      },
      async (request) => presentJob(await webhookJobs.get(request.scope, request.params.id)),
    );
    done();
  };
