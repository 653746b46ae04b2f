import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { OrganizationService } from '../../domain/organizations/organization.service.ts';
import type { OwnershipService } from '../../domain/organizations/ownership.service.ts';
import { changeProblems, NoContent, postProblems, problems, ref } from '../schemas.ts';
import {
  MinimalOrganization,
  OrganizationRecord,
  presentOrganization,
  TransferOwnership,
  UpdateOrganization,
} from './organization.schemas.ts';

export interface OrganizationRouteDependencies {
  organizations: OrganizationService;
  ownership: OwnershipService;
}

export const organizationRoutes =
  ({ organizations, ownership }: OrganizationRouteDependencies): FastifyPluginCallbackTypebox =>
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

    app.patch(
      '/org',
      {
        config: {
          permission: 'org:update',
          readPermission: 'inboxes:read',
          minimalResponse: MinimalOrganization,
        },
        schema: {
          operationId: 'organization.update',
          summary: 'Change the name or slug of the organization',
          description: 'The slug is unique, and appears where people sign in by SSO.',
          tags: ['Organization'],
          body: ref(UpdateOrganization),
          response: { 200: ref(OrganizationRecord), ...changeProblems() },
        },
      },
      async ({ scope, body: { name, slug } }) =>
        presentOrganization(
          await organizations.update(scope, {
            ...(name === undefined ? {} : { name }),
            ...(slug === undefined ? {} : { slug }),
          }),
        ),
    );

    app.post(
      '/org/transfer-ownership',
      {
        config: { permission: 'org:transfer' },
        schema: {
          operationId: 'organization.transferOwnership',
          summary: 'Make another member the owner',
          description:
            'You become an administrator. Requires that you signed in within the last ten minutes. Both people are informed by email.',
          tags: ['Organization'],
          body: ref(TransferOwnership),
          response: { 204: NoContent, ...postProblems() },
        },
      },
      async ({ scope, body }, reply) => {
        await ownership.transfer(scope, body.user_id);
        reply.code(204);
        return null;
      },
    );
    done();
  };
