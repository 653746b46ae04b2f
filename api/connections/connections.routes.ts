import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { ConnectionService } from '../../domain/connections/connection.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, problems, ref, strictObject } from '../schemas.ts';
import { ConnectionRecord, presentConnection } from './connections.schemas.ts';

/** Every role has this permission. The use-case decides which connections a member sees. */
const OWN = { permission: 'usage:read', exemptFromUsageLimit: true } as const;

export const connectionRoutes =
  ({ connections, lists }: { connections: ConnectionService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/connections',
      {
        config: OWN,
        schema: {
          operationId: 'connections.list',
          summary: 'List connections of MCP hosts',
          description:
            'The connections that people granted by signing in, and that still work: your own, or with members:manage all of the organization. A key needs members:manage.',
          tags: ['API keys'],
          querystring: strictObject(pageQuery),
          response: { 200: listOf(ref(ConnectionRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await connections.list(request.scope, lists.read(request));
        return lists.present(request, page, presentConnection);
      },
    );

    app.delete(
      '/connections/:id',
      {
        config: { ...OWN, impersonation: 'never' },
        schema: {
          operationId: 'connections.end',
          summary: 'End a connection',
          description: 'Its tokens stop working at once. The client has to ask a person again.',
          tags: ['API keys'],
          params: strictObject({ id: id('Connection id (con_…).') }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await connections.end(scope, params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };
