import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { AcceptInvitationService } from '../../domain/invitations/accept-invitation.service.ts';
import { INVITATION_STATUSES } from '../../domain/invitations/invitation.entity.ts';
import type { InvitationService } from '../../domain/invitations/invitation.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { presentSignIn, SignInResponse } from '../people/auth.schemas.ts';
import { clientOf } from '../people/client-of.ts';
import { enumOf, id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  AcceptInvitation,
  CreateInvitation,
  InvitationRecord,
  MinimalInvitation,
  presentInvitation,
} from './invitations.schemas.ts';

export interface InvitationRouteDependencies {
  invitations: InvitationService;
  invitationAcceptance: AcceptInvitationService;
  accounts: AccountService;
  lists: Lists;
}

const INVITING = {
  permission: 'members:manage',
  readPermission: 'members:read',
  minimalResponse: MinimalInvitation,
} as const;

export const invitationRoutes =
  (dependencies: InvitationRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { invitations, invitationAcceptance, accounts, lists } = dependencies;

    app.post(
      '/org/invitations',
      {
        config: INVITING,
        schema: {
          operationId: 'invitations.create',
          summary: 'Invite a person by email',
          description:
            'Mails a token, which works once and for 7 days. At most one email a day to an address, and 50 open invitations. A key can give only a role whose permissions it has.',
          tags: ['Organization'],
          body: ref(CreateInvitation),
          response: { 201: ref(InvitationRecord), ...postProblems() },
        },
      },
      async ({ scope, body }, reply) => {
        const invitation = await invitations.create(scope, body);
        reply.code(201);
        return presentInvitation(invitation);
      },
    );

    app.get(
      '/org/invitations',
      {
        config: { permission: 'members:read' },
        schema: {
          operationId: 'invitations.list',
          summary: 'List invitations',
          tags: ['Organization'],
          querystring: strictObject({
            ...pageQuery,
            status: Type.Optional(
              enumOf(INVITATION_STATUSES, { description: 'Only those with this status.' }),
            ),
          }),
          response: { 200: listOf(ref(InvitationRecord)), ...problems() },
        },
      },
      async (request) => {
        const { status } = request.query;
        const page = await invitations.list(
          request.scope,
          status === undefined ? {} : { status },
          lists.read(request),
        );
        return lists.present(request, page, presentInvitation);
      },
    );

    app.post(
      '/org/invitations/:id/revoke',
      {
        config: { ...INVITING, bodyMayBeEmpty: true },
        schema: {
          operationId: 'invitations.revoke',
          summary: 'Revoke a pending invitation',
          tags: ['Organization'],
          params: strictObject({ id: id('Id of the invitation (inv_…).') }),
          response: { 200: ref(InvitationRecord), ...postProblems() },
        },
      },
      async ({ scope, params }) => presentInvitation(await invitations.revoke(scope, params.id)),
    );

    app.post(
      '/invitations/accept',
      {
        config: { public: true },
        schema: {
          operationId: 'invitations.accept',
          summary: 'Accept an invitation with the mailed token',
          description:
            'Without an account: creates it with the given password, and returns a session. With one: send the session of the account that has the invited address, and no password.',
          tags: ['Sign-in'],
          body: ref(AcceptInvitation),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const session = await request.findSession();
        const { userId, signIn } = await invitationAcceptance.accept(
          request.body,
          clientOf(request),
          session,
        );
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );
    done();
  };
