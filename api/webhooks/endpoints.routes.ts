import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { WebhookEndpointService } from '../../domain/webhooks/endpoint.service.ts';
import { ENDPOINT_STATES } from '../../domain/webhooks/endpoint-health.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  postProblems,
  problems,
  ref,
  strictObject,
} from '../schemas.ts';
import {
  CREATED_ENDPOINT_RESPONSE,
  CreatedEndpoint,
  CreateEndpoint,
  ENDPOINT_RESPONSE,
  EndpointRecord,
  presentEndpoint,
  UpdateEndpoint,
} from './endpoints.schemas.ts';

const EndpointQuery = strictObject({
  ...pageQuery,
  state: Type.Optional(
    enumOf(ENDPOINT_STATES, {
      description:
        'failing: its attempts fail, or the service has disabled it. paused: you have disabled it.',
    }),
  ),
});
const EndpointParams = strictObject({ id: id('Endpoint id (whe_…).') });

export interface EndpointRoutesOptions {
  webhookEndpoints: WebhookEndpointService;
  lists: Lists;
  /** The specification names two paths for the same operations. */
  path: '/webhooks/endpoints' | '/webhook-endpoints';
}

export const endpointRoutes =
  ({ webhookEndpoints, lists, path }: EndpointRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const alias = path === '/webhook-endpoints';
    const operation = (name: string, summary: string) => ({
      operationId: `${alias ? 'webhookEndpointsAlias' : 'webhookEndpoints'}.${name}`,
      summary: alias ? `${summary} (same as /webhooks/endpoints)` : summary,
      tags: ['Webhook endpoints'],
    });

    app.post(
      path,
      {
        config: { permission: 'webhooks:manage', ...CREATED_ENDPOINT_RESPONSE, impersonation: 'never' },
        schema: {
          ...operation('create', 'Create a webhook endpoint'),
          body: ref(CreateEndpoint),
          response: { 201: ref(CreatedEndpoint), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { inbox_ids, ...input } = request.body;
        const created = await webhookEndpoints.create(request.scope, { ...input, inboxIds: inbox_ids });
        reply.code(201);
        return { ...presentEndpoint(created), secret: created.secret };
      },
    );

    app.get(
      path,
      {
        config: { permission: 'webhooks:read' },
        schema: {
          ...operation('list', 'List webhook endpoints'),
          querystring: EndpointQuery,
          response: { 200: listOf(ref(EndpointRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await webhookEndpoints.list(
          request.scope,
          { state: request.query.state },
          lists.read(request),
        );
        return lists.present(request, page, presentEndpoint);
      },
    );

    app.get(
      `${path}/:id`,
      {
        config: { permission: 'webhooks:read' },
        schema: {
          ...operation('get', 'Get a webhook endpoint'),
          params: EndpointParams,
          response: { 200: ref(EndpointRecord), ...problems() },
        },
      },
      async (request) => presentEndpoint(await webhookEndpoints.get(request.scope, request.params.id)),
    );

    app.patch(
      `${path}/:id`,
      {
        config: { permission: 'webhooks:manage', ...ENDPOINT_RESPONSE, impersonation: 'never' },
        schema: {
          ...operation('update', 'Update a webhook endpoint'),
          params: EndpointParams,
          body: ref(UpdateEndpoint),
          response: { 200: ref(EndpointRecord), ...changeProblems(422) },
        },
      },
      async (request) => {
        const { inbox_ids, ...patch } = request.body;
        const endpoint = await webhookEndpoints.update(request.scope, request.params.id, {
          ...patch,
          inboxIds: inbox_ids,
        });
        return presentEndpoint(endpoint);
      },
    );

    app.delete(
      `${path}/:id`,
      {
        config: { permission: 'webhooks:manage' },
        schema: {
          ...operation('delete', 'Delete a webhook endpoint'),
          params: EndpointParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await webhookEndpoints.delete(request.scope, request.params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };
