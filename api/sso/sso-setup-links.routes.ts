import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { SsoSetupLinkService } from '../../domain/sso/sso-setup-link.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  CreatedSsoSetupLink,
  CreateSsoSetupLink,
  presentSsoSetupLink,
  SsoSetupLinkRecord,
} from './sso-setup-links.schemas.ts';

export interface SsoSetupLinkRouteDependencies {
  ssoSetupLinks: SsoSetupLinkService;
  lists: Lists;
}

const permission = 'sso:manage';
const tags = ['SSO'];

/** Links by which a person outside the organization sets up single sign-on. */
export const ssoSetupLinkRoutes =
  ({ ssoSetupLinks, lists }: SsoSetupLinkRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/org/sso/setup-links',
      {
        config: { permission, readPermission: permission, bodyMayBeEmpty: true },
        schema: {
          operationId: 'sso.createSetupLink',
          summary: 'Create a set-up link for a person outside the organization',
          description:
            'The link works once and for 7 days. It opens a page that for two hours creates, changes and tests one draft, and cannot activate it. An organization has at most 5 open links; an address gets at most one email a day.',
          tags,
          body: ref(CreateSsoSetupLink),
          response: { 201: ref(CreatedSsoSetupLink), ...postProblems() },
        },
      },
      async ({ scope, body }, reply) => {
        const {
          id: linkId,
          url,
          expiresAt,
        } = await ssoSetupLinks.create(scope, {
          email: body?.email ?? undefined,
        });
        reply.code(201);
        return { object: 'sso_setup_link' as const, id: linkId, url, expires_at: expiresAt.toISOString() };
      },
    );

    app.get(
      '/org/sso/setup-links',
      {
        config: { permission },
        schema: {
          operationId: 'sso.listSetupLinks',
          summary: 'List the open set-up links',
          tags,
          querystring: PageQuery,
          response: { 200: listOf(ref(SsoSetupLinkRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(
          request,
          await ssoSetupLinks.list(request.scope, lists.read(request)),
          presentSsoSetupLink,
        ),
    );

    app.delete(
      '/org/sso/setup-links/:setupLinkId',
      {
        config: { permission },
        schema: {
          operationId: 'sso.revokeSetupLink',
          summary: 'Revoke a set-up link',
          description: 'Its page ends at the next request. The draft that was created with it stays.',
          tags,
          params: strictObject({ setupLinkId: id('Id of the set-up link (ssl_…).') }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await ssoSetupLinks.revoke(scope, params.setupLinkId);
        return reply.code(204).send(null);
      },
    );
    done();
  };
