import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { BulkJobService } from '../../domain/webhooks/bulk-job.service.ts';
import type { DeliveryControlService } from '../../domain/webhooks/delivery-control.service.ts';
import type { WebhookEndpointService } from '../../domain/webhooks/endpoint.service.ts';
import { type Lists, listOf } from '../lists.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { parseTime } from '../time.ts';
import {
  BulkJobRecord,
  DELIVERY_RESPONSE,
  DeliveryQuery,
  DeliverySummary,
  JOB_RESPONSE,
  presentDeliverySummary,
  presentJob,
  ReplayEvents,
  RotateSecret,
  SendTestEvent,
} from './deliveries.schemas.ts';
import type { EndpointRoutesOptions } from './endpoints.routes.ts';
import { CREATED_ENDPOINT_RESPONSE, CreatedEndpoint, presentEndpoint } from './endpoints.schemas.ts';

const EndpointParams = strictObject({ id: id('Endpoint id (whe_…).') });

export interface EndpointOperationsOptions {
  webhookEndpoints: WebhookEndpointService;
  webhookDeliveries: DeliveryControlService;
  webhookJobs: BulkJobService;
  lists: Lists;
  path: EndpointRoutesOptions['path'];
}

export const endpointOperationRoutes =
  (options: EndpointOperationsOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { webhookEndpoints, webhookDeliveries, webhookJobs, lists, path } = options;
    const alias = path === '/webhook-endpoints';
    const operation = (name: string, summary: string) => ({
      operationId: `${alias ? 'webhookEndpointsAlias' : 'webhookEndpoints'}.${name}`,
      summary: alias ? `${summary} (same as /webhooks/endpoints)` : summary,
      tags: ['Webhook endpoints'],
      params: EndpointParams,
    });

    app.get(
      `${path}/:id/deliveries`,
      {
        config: { permission: 'webhooks:read' },
        schema: {
          ...operation('listDeliveries', 'List the deliveries to an endpoint'),
          querystring: DeliveryQuery,
          response: { 200: listOf(ref(DeliverySummary)), ...problems() },
        },
      },
      async (request) => {
        const { status, event_type } = request.query;
        const filter = { status, eventType: event_type };
        const { scope, params } = request;
        const page = await webhookDeliveries.list(scope, params.id, filter, lists.read(request));
        return lists.present(request, page, presentDeliverySummary);
      },
    );

    app.post(
      `${path}/:id/test`,
      {
        config: { permission: 'webhooks:manage', ...DELIVERY_RESPONSE, bodyMayBeEmpty: true },
        schema: {
          ...operation('test', 'Send a test event to an endpoint'),
          body: ref(SendTestEvent),
          response: { 202: ref(DeliverySummary), ...postProblems() },
        },
      },
      async (request, reply) => {
        const details = await webhookDeliveries.sendTest(
          request.scope,
          request.params.id,
          request.body.event_type,
        );
        reply.code(202);
        return presentDeliverySummary(details);
      },
    );

    app.post(
      `${path}/:id/rotate-secret`,
      {
        config: {
          permission: 'webhooks:manage',
          ...CREATED_ENDPOINT_RESPONSE,
          bodyMayBeEmpty: true,
          impersonation: 'never',
        },
        schema: {
          ...operation('rotateSecret', 'Rotate the signing secret of an endpoint'),
          body: ref(RotateSecret),
          response: { 200: ref(CreatedEndpoint), ...postProblems() },
        },
      },
      async (request) => {
        const { scope, params, body } = request;
        const rotated = await webhookEndpoints.rotateSecret(scope, params.id, body.overlap_seconds);
        return { ...presentEndpoint(rotated), secret: rotated.secret };
      },
    );

    app.post(
      `${path}/:id/replay`,
      {
        config: { permission: 'webhooks:manage', ...JOB_RESPONSE },
        schema: {
          ...operation('replay', 'Replay the events of a time range'),
          body: ref(ReplayEvents),
          response: { 202: ref(BulkJobRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { since, until, event_types, only_failed } = request.body;
        const job = await webhookJobs.replay(request.scope, request.params.id, {
          since: parseTime('/body/since', since),
          until: until === undefined ? undefined : parseTime('/body/until', until),
          eventTypes: event_types,
          onlyFailed: only_failed,
        });
        reply.code(202);
        return presentJob(job);
      },
    );

    app.post(
      `${path}/:id/cancel-pending`,
      {
        config: { permission: 'webhooks:manage', ...JOB_RESPONSE },
        schema: {
          ...operation('cancelPending', 'Cancel all pending and held deliveries of an endpoint'),
          response: { 202: ref(BulkJobRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const job = await webhookJobs.cancelPending(request.scope, request.params.id);
        reply.code(202);
        return presentJob(job);
      },
    );
    done();
  };
