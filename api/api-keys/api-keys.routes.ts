import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { ApiKeyRecord, CreateApiKey, CreatedApiKey, presentApiKey } from './api-keys.schemas.ts';

/** A leaked key must be revocable even if it has used up the organization's limits. */
const KEY_MANAGEMENT = {
  permission: 'keys:manage',
  readPermission: 'keys:manage',
  exemptFromUsageLimit: true,
} as const;
const ApiKeyParams = strictObject({ id: id('Key id (key_…).') });

export const apiKeyRoutes =
  ({ apiKeys, lists }: { apiKeys: ApiKeyService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/api-keys',
      {
        config: KEY_MANAGEMENT,
        schema: {
          operationId: 'apiKeys.create',
          summary: 'Create an API key',
          description: 'Its permissions, binding and lifetime cannot exceed those of the creating key.',
          tags: ['API keys'],
          body: ref(CreateApiKey),
          response: { 201: ref(CreatedApiKey), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { name, permissions, env_id, inbox_id, expires_at } = request.body;
        const { key, token } = await apiKeys.create(request.scope, {
          name,
          permissions,
          environmentId: env_id,
          inboxId: inbox_id,
          expiresAt: expires_at === undefined ? undefined : parseTime('/body/expires_at', expires_at),
        });
        reply.code(201);
        return { ...presentApiKey(key), token };
      },
    );

    app.get(
      '/api-keys',
      {
        config: KEY_MANAGEMENT,
        schema: {
          operationId: 'apiKeys.list',
          summary: 'List API keys',
          tags: ['API keys'],
          querystring: PageQuery,
          response: { 200: listOf(ref(ApiKeyRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await apiKeys.list(request.scope, lists.read(request));
        return lists.present(request, page, presentApiKey);
      },
    );

    app.get(
      '/api-keys/:id',
      {
        config: KEY_MANAGEMENT,
        schema: {
          operationId: 'apiKeys.get',
          summary: 'Get an API key',
          tags: ['API keys'],
          params: ApiKeyParams,
          response: { 200: ref(ApiKeyRecord), ...problems() },
        },
      },
      async (request) => presentApiKey(await apiKeys.get(request.scope, request.params.id)),
    );

    app.delete(
      '/api-keys/:id',
      {
        config: KEY_MANAGEMENT,
        schema: {
          operationId: 'apiKeys.delete',
          summary: 'Revoke an API key',
          tags: ['API keys'],
          params: ApiKeyParams,
          querystring: strictObject({
            revoke_children: Type.Boolean({
              default: false,
              description: 'Also revokes the keys that this key created, and those that they created.',
            }),
          }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await apiKeys.revoke(request.scope, request.params.id, { children: request.query.revoke_children });
        return reply.code(204).send(null);
      },
    );
    done();
  };
