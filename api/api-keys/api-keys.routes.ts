import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { parseTime } from '../time.ts';
import {
  ApiKeyRecord,
  CreateApiKey,
  CreatedApiKey,
  presentApiKey,
  RotateApiKey,
  UpdateApiKey,
} from './api-keys.schemas.ts';

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
          description:
            'Its permissions, binding, lifetime and address ranges cannot exceed those of the creating key, or the role of the person. A key made by a key belongs to the person behind it.',
          tags: ['API keys'],
          body: ref(CreateApiKey),
          response: { 201: ref(CreatedApiKey), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { name, permissions, env_id, inbox_id, expires_at, allowed_cidrs } = request.body;
        const { key, token } = await apiKeys.create(request.scope, {
          name,
          permissions,
          environmentId: env_id,
          inboxId: inbox_id,
          expiresAt: expires_at === undefined ? undefined : parseTime('/body/expires_at', expires_at),
          allowedCidrs: allowed_cidrs,
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
          description:
            'Developers, and keys that they created, see only the keys that the developer created.',
          tags: ['API keys'],
          querystring: strictObject({
            ...pageQuery,
            created_by_user_id: Type.Optional(id('Only keys of this person.')),
            created_by_key_id: Type.Optional(id('Only keys that this key created.')),
            last_used_before: Type.Optional(
              Type.String({
                format: 'date-time',
                maxLength: 40,
                description: 'Only keys that have been neither used nor created since this time.',
              }),
            ),
          }),
          response: { 200: listOf(ref(ApiKeyRecord)), ...problems() },
        },
      },
      async (request) => {
        const { created_by_user_id, created_by_key_id, last_used_before } = request.query;
        const filter = {
          createdByUserId: created_by_user_id,
          createdByKeyId: created_by_key_id,
          lastUsedBefore:
            last_used_before === undefined
              ? undefined
              : parseTime('/query/last_used_before', last_used_before),
        };
        const page = await apiKeys.list(request.scope, filter, lists.read(request));
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

    app.patch(
      '/api-keys/:id',
      {
        config: KEY_MANAGEMENT,
        schema: {
          operationId: 'apiKeys.update',
          summary: 'Change an API key',
          description:
            'Takes effect with its next request. What the caller lacks can only be taken away: permissions, a later expiry and wider address ranges are limited to those of the caller and the key. The keys that it created stay as they are.',
          tags: ['API keys'],
          params: ApiKeyParams,
          body: ref(UpdateApiKey),
          response: { 200: ref(ApiKeyRecord), ...changeProblems() },
        },
      },
      async ({ scope, params, body: { name, permissions, expires_at, allowed_cidrs } }) =>
        presentApiKey(
          await apiKeys.update(scope, params.id, {
            ...(name === undefined ? {} : { name }),
            ...(permissions === undefined ? {} : { permissions }),
            ...(expires_at === undefined
              ? {}
              : { expiresAt: expires_at === null ? null : parseTime('/body/expires_at', expires_at) }),
            ...(allowed_cidrs === undefined ? {} : { allowedCidrs: allowed_cidrs }),
          }),
        ),
    );

    app.post(
      '/api-keys/:id/rotate',
      {
        config: { ...KEY_MANAGEMENT, bodyMayBeEmpty: true },
        schema: {
          operationId: 'apiKeys.rotate',
          summary: 'Replace the token of an API key',
          description:
            'The key keeps its id, permissions, expiry and the keys that it created. The old token works for overlap_seconds more. The caller must have every permission of the key.',
          tags: ['API keys'],
          params: ApiKeyParams,
          body: ref(RotateApiKey),
          response: { 201: ref(CreatedApiKey), ...postProblems() },
        },
      },
      async ({ scope, params, body }, reply) => {
        const { key, token } = await apiKeys.rotate(scope, params.id, body.overlap_seconds);
        reply.code(201);
        return { ...presentApiKey(key), token };
      },
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
