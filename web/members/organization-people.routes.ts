import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { OwnershipService } from '../../domain/organizations/ownership.service.ts';
import { finishOrganizationForm, type OrganizationPageDependencies } from '../settings/organization-page.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';

export interface OrganizationPeoplePageDependencies extends OrganizationPageDependencies {
  ownership: OwnershipService;
}

/** Forms of the organization page: its name, invitations, and the owner. */
export const organizationPeoplePages =
  (dependencies: OrganizationPeoplePageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { organizations, invitations, ownership } = dependencies;

    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>, notice: Notice) =>
      finishOrganizationForm(dependencies, request, reply, { work, notice });

    app.post(
      '/organization/settings',
      {
        config: { permission: 'org:update' },
        schema: {
          operationId: 'pages.updateOrganization',
          querystring: OrganizationQuery,
          body: strictObject({ name: text(200), slug: text(100) }),
        },
      },
      async (request, reply) => {
        const { scope, body } = request;
        const current = await organizations.get(scope);
        // A slug from before the present rules stays as it is.
        const slug = body.slug === current.slug ? {} : { slug: body.slug };
        return finish(request, reply, organizations.update(scope, { name: body.name, ...slug }), 'saved');
      },
    );

    app.post(
      '/organization/owner',
      {
        config: { permission: 'org:transfer' },
        schema: {
          operationId: 'pages.transferOwnership',
          querystring: OrganizationQuery,
          body: strictObject({ user_id: text(64) }),
        },
      },
      async (request, reply) =>
        finish(request, reply, ownership.transfer(request.scope, request.body.user_id), 'owner-changed'),
    );

    app.post(
      '/organization/invitations',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'pages.invite',
          querystring: OrganizationQuery,
          body: strictObject({ email: text(254), role: enumOf(MEMBER_ROLES) }),
        },
      },
      async (request, reply) =>
        finish(request, reply, invitations.create(request.scope, request.body), 'invited'),
    );

    app.post(
      '/organization/invitations/revoke',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'pages.revokeInvitation',
          querystring: OrganizationQuery,
          body: strictObject({ invitation_id: text(64) }),
        },
      },
      async (request, reply) => {
        const revoking = invitations.revoke(request.scope, request.body.invitation_id);
        return finish(request, reply, revoking, 'invitation-revoked');
      },
    );
    done();
  };
