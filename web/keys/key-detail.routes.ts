import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { singleLineText } from '../../api/messages/addresses.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { ApiKeyChange } from '../../domain/api-keys/api-key.service.ts';
import type { ApiKeyRow } from '../../domain/api-keys/key-authority.ts';
import { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import { ChosenPermissions, readExpiry, readLines, readPermissions } from './key-form.ts';
import { grantable, type KeyPageDependencies, namesOfEnvironments } from './keys.routes.ts';
import { groupPermissions } from './permission-words.ts';
import { findNames } from './person-names.ts';
import { badgesOf, isUnused } from './use.ts';

const KeyParams = strictObject({ id: text(64) });
const CHILDREN = { limit: 20, order: 'desc' } as const;
/** How long clients may go on with the old token. */
const OVERLAPS = {
  '86400': 'for another day',
  '3600': 'for another hour',
  '604800': 'for another week',
  '0': 'no longer',
};

/** One API key: what it may do, who made it, when and from where it was used last, and what can be changed. */
export const keyDetailPages =
  ({ pages, apiKeys, inboxes, members, config }: KeyPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { scope } = request;
      const { id } = request.params as { id: string };
      const key = await apiKeys.get(scope, id);
      const children = await apiKeys.list(scope, { createdByKeyId: id }, CHILDREN);
      const mine = grantable(scope);
      return pages.send(request, reply, {
        template: 'keys/key',
        title: key.name,
        problem,
        data: {
          key,
          badges: badgesOf(key),
          isUnused: isUnused(key),
          isExpired: key.expiresAt !== null && key.expiresAt.getTime() <= Date.now(),
          overlaps: key.previousExpiresAt !== null && key.previousExpiresAt.getTime() > Date.now(),
          names: await findNames(members, scope),
          parent: key.createdByKeyId ? await orNothing(apiKeys.get(scope, key.createdByKeyId)) : undefined,
          inbox: key.inboxId && (await orNothing(inboxes.get(inEnvironmentOf(request, key), key.inboxId))),
          environments: namesOfEnvironments(request),
          children: children.items,
          hasMoreChildren: children.next !== null,
          held: groupPermissions(new Set(key.permissions)),
          groups: groupPermissions(new Set([...mine, ...key.permissions])),
          expiresOn: key.expiresAt?.toISOString().slice(0, 10) ?? '',
          overlapChoices: Object.entries(OVERLAPS),
        },
        apiCall: { path: `/api-keys/${id}` },
      });
    };

    app.get(
      '/keys/:id',
      {
        config: { permission: 'keys:manage' },
        schema: { operationId: 'pages.key', params: KeyParams, querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/keys/:id', {
      config: { permission: 'keys:manage' },
      schema: {
        operationId: 'pages.updateKey',
        params: KeyParams,
        body: strictObject({
          name: singleLineText(255, { minLength: 1 }),
          permissions: ChosenPermissions,
          expires_at: Type.Optional(text(10)),
          allowed_cidrs: Type.Optional(text(6_500)),
        }),
      },
      work: async ({ scope, params, body }) => {
        const key = await apiKeys.get(scope, params.id);
        return apiKeys.update(
          scope,
          params.id,
          changeOf(key, {
            name: body.name,
            permissions: readPermissions(body.permissions),
            expiresAt: readExpiry(body.expires_at),
            allowedCidrs: readLines(body.allowed_cidrs),
          }),
        );
      },
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, `/keys/${request.params.id}`), 'key-changed'),
    });

    pages.form(app, '/keys/:id/rotate', {
      config: { permission: 'keys:manage' },
      schema: {
        operationId: 'pages.rotateKey',
        params: KeyParams,
        body: strictObject({ overlap: enumOf(Object.keys(OVERLAPS) as (keyof typeof OVERLAPS)[]) }),
      },
      work: ({ scope, params, body }) => apiKeys.rotate(scope, params.id, Number(body.overlap)),
      show,
      done: (request, reply, { key, token }) =>
        pages.send(request, reply, {
          template: 'keys/key-token',
          title: 'The new token of your API key',
          data: { key, token, publicUrl: config.PUBLIC_URL, oldTokenWorks: OVERLAPS[request.body.overlap] },
        }),
    });

    pages.form(app, '/keys/:id/revoke', {
      config: { permission: 'keys:manage' },
      schema: {
        operationId: 'pages.revokeKey',
        params: KeyParams,
        body: strictObject({ children: Type.Optional(Type.Literal('on')) }),
      },
      work: ({ scope, params, body }) =>
        apiKeys.revoke(scope, params.id, { children: body.children === 'on' }),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/keys'), 'key-revoked'),
    });
    done();
  };

/** Only what differs: what the person lacks cannot be given again. */
function changeOf(key: ApiKeyRow, wanted: Required<ApiKeyChange>): ApiKeyChange {
  const day = (date: Date | null) => date?.toISOString().slice(0, 10);
  const list = (items: readonly string[]) => [...items].sort().join();
  return {
    ...(wanted.name === key.name ? {} : { name: wanted.name }),
    ...(list(wanted.permissions) === list(key.permissions) ? {} : { permissions: wanted.permissions }),
    ...(day(wanted.expiresAt) === day(key.expiresAt) ? {} : { expiresAt: wanted.expiresAt }),
    ...(list(wanted.allowedCidrs) === list(key.allowedCidrs) ? {} : { allowedCidrs: wanted.allowedCidrs }),
  };
}

/** A key may be bound to an inbox of another environment than the page shows. */
const inEnvironmentOf = ({ scope }: FastifyRequest, { environmentId }: ApiKeyRow) =>
  environmentId === null || scope.environmentBound ? scope : { ...scope, environmentId };

/** What was deleted or revoked meanwhile. */
async function orNothing<Found>(finding: Promise<Found>): Promise<Found | undefined> {
  try {
    return await finding;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}
