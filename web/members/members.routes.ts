import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { isRoleWithin, MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { InvitationService } from '../../domain/invitations/invitation.service.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import type { OwnershipService } from '../../domain/organizations/ownership.service.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { ROLE_HINT, ROLE_TEXTS } from './role-texts.ts';

export interface MemberPageDependencies {
  pages: Pages;
  members: MemberService;
  invitations: InvitationService;
  ownership: OwnershipService;
}

const permission = 'members:manage';
const OPEN_INVITATIONS = { limit: 100, order: 'desc' } as const;
/** A change of one's own access needs a confirmation. */
const confirmSelf = Type.Optional(Type.Literal('on'));

/** Who belongs to the organization, in which role, and who is invited. */
export const memberPages =
  ({ pages, members, invitations, ownership }: MemberPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { scope } = request;
      const own = scope.member?.role ?? 'viewer';
      const page = await members.list(scope, pages.readPage(request, { limit: 50, order: 'asc' }));
      const pending = scope.permissions.has(permission)
        ? await invitations.list(scope, { status: 'pending' }, OPEN_INVITATIONS)
        : undefined;
      return pages.send(request, reply, {
        template: 'members/members',
        title: 'Members',
        problem,
        data: {
          members: page.items.map((member) => ({
            ...member,
            isSelf: member.userId === scope.actor.id,
            isManageable: isRoleWithin(member.role, own),
          })),
          next: pages.nextPage(request, page, 'asc'),
          invitations: pending?.items,
          own,
          // From the lowest: a person is invited with as little as they need.
          roles: MEMBER_ROLES.filter((role) => isRoleWithin(role, own)).reverse(),
          roleTexts: ROLE_TEXTS,
          roleHint: ROLE_HINT,
          isOnlyOwner: page.next === null && page.items.filter(({ role }) => role === 'owner').length === 1,
        },
        apiCall: { path: '/org/members', query: { limit: 50 } },
      });
    };

    app.get(
      '/members',
      {
        config: { permission: 'members:read' },
        schema: { operationId: 'pages.members', querystring: listQuery({}) },
      },
      async (request, reply) => show(request, reply),
    );

    const isSelf = ({ scope }: FastifyRequest, userId: string) => userId === scope.actor.id;

    pages.form(app, '/members/role', {
      config: { permission },
      schema: {
        operationId: 'pages.changeMemberRole',
        body: strictObject({ user_id: text(64), role: enumOf(MEMBER_ROLES), confirm_self: confirmSelf }),
      },
      work: async (request) => {
        const { user_id: userId, role, confirm_self: confirmed } = request.body;
        if (isSelf(request, userId)) requireConfirmation(confirmed, 'change your own role');
        await members.changeRole(request.scope, userId, role);
        return isSelf(request, userId) && !isRoleWithin('admin', role);
      },
      show,
      done: (request, reply, hasLostAccess) =>
        hasLostAccess
          ? pages.seeOther(reply, '/account', 'member-changed')
          : pages.seeOther(reply, pages.link(request, '/members'), 'member-changed'),
    });

    pages.form(app, '/members/remove', {
      config: { permission },
      schema: {
        operationId: 'pages.removeMember',
        body: strictObject({
          user_id: text(64),
          keep_keys: Type.Optional(Type.Literal('on')),
          confirm_self: confirmSelf,
        }),
      },
      work: async (request) => {
        const { user_id: userId, keep_keys: keepKeys, confirm_self: confirmed } = request.body;
        if (isSelf(request, userId)) requireConfirmation(confirmed, 'leave the organization');
        await members.remove(request.scope, userId, { revokeKeys: keepKeys === undefined });
      },
      show,
      done(request, reply) {
        if (isSelf(request, request.body.user_id))
          return pages.seeOther(reply, '/account', 'organization-left');
        const notice =
          request.body.keep_keys === undefined ? 'member-removed' : 'member-removed-without-keys';
        return pages.seeOther(reply, pages.link(request, '/members'), notice);
      },
    });

    pages.form(app, '/members/owner', {
      config: { permission: 'org:transfer' },
      schema: { operationId: 'pages.transferOwnership', body: strictObject({ user_id: text(64) }) },
      work: (request) => ownership.transfer(request.scope, request.body.user_id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/members'), 'owner-changed'),
    });

    pages.form(app, '/members/invitations', {
      config: { permission },
      schema: {
        operationId: 'pages.invite',
        body: strictObject({ email: text(254, { minLength: 1 }), role: enumOf(MEMBER_ROLES) }),
      },
      work: (request) => invitations.create(request.scope, request.body),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/members'), 'invited'),
    });

    pages.form(app, '/members/invitations/revoke', {
      config: { permission },
      schema: { operationId: 'pages.revokeInvitation', body: strictObject({ invitation_id: text(64) }) },
      work: (request) => invitations.revoke(request.scope, request.body.invitation_id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/members'), 'invitation-revoked'),
    });
    done();
  };

function requireConfirmation(confirmed: 'on' | undefined, act: string): void {
  if (confirmed === undefined)
    throw invalid('/body/confirm_self', `must be checked, because you would ${act}`, 'Check it to go on.');
}
