import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { OrganizationService } from '../../domain/organizations/organization.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { problems, ref } from '../schemas.ts';
import {
  EnvironmentRecord,
  OrganizationRecord,
  presentEnvironment,
  presentOrganization,
} from './organization.schemas.ts';

export const organizationRoutes =
  ({
    organizations,
    lists,
  }: {
    organizations: OrganizationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'organization.get',
          summary: 'Get the organization of the credential',
          tags: ['Organization'],
          response: { 200: ref(OrganizationRecord), ...problems() },
        },
      },
      async (request) => presentOrganization(await organizations.get(request.scope)),
    );

    app.get(
      '/org/environments',
      {
        config: { permission: 'inboxes:read' },
        schema: {
          operationId: 'organization.listEnvironments',
          summary: 'List the environments the credential may select with x-env-id',
          tags: ['Organization'],
          querystring: PageQuery,
          response: { 200: listOf(ref(EnvironmentRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await organizations.listEnvironments(request.scope, lists.read(request));
        return lists.present(request, page, presentEnvironment);
      },
    );
    done();
  };
