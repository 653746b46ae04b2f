import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { Static } from 'typebox';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { MemberDetails, MemberService } from '../../domain/organizations/member.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { receiptOf } from '../receipts.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableText,
  problems,
  ref,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const MemberRecord = strictObject(
  {
    user_id: id('Id of the user (usr_…).'),
    email: text(254),
    name: nullableText(255),
    avatar_url: nullableText(2_048),
    role: enumOf(MEMBER_ROLES),
    created_at: timestamp('When the person became a member.'),
  },
  { $id: 'Member', title: 'Member' },
);
export const ChangeRole = strictObject(
  { role: enumOf(MEMBER_ROLES) },
  { $id: 'ChangeRole', title: 'ChangeRole' },
);
export const MemberReceipt = receiptOf(MemberRecord, ['user_id', 'role']);
const MemberParams = strictObject({ userId: id('Id of the user (usr_…).') });

export const memberRoutes =
  ({ members, lists }: { members: MemberService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/members',
      {
        config: { permission: 'members:read' },
        schema: {
          operationId: 'members.list',
          summary: 'List the members of the organization',
          tags: ['Organization'],
          querystring: PageQuery,
          response: { 200: listOf(ref(MemberRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(request, await members.list(request.scope, lists.read(request)), presentMember),
    );

    app.patch(
      '/org/members/:userId',
      {
        config: { permission: 'members:manage', readPermission: 'members:read', receipt: MemberReceipt },
        schema: {
          operationId: 'members.update',
          summary: 'Change the role of a member',
          description:
            'Takes effect with the next request of the member. No one grants, changes or removes a role above their own; an organization keeps at least one owner.',
          tags: ['Organization'],
          params: MemberParams,
          body: ref(ChangeRole),
          response: { 200: ref(MemberRecord), ...changeProblems() },
        },
      },
      async ({ scope, params, body }) =>
        presentMember(await members.changeRole(scope, params.userId, body.role)),
    );

    app.delete(
      '/org/members/:userId',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'members.remove',
          summary: 'Remove a member',
          description:
            'Their sessions lose access to the organization with their next request. Their account stays.',
          tags: ['Organization'],
          params: MemberParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await members.remove(scope, params.userId);
        return reply.code(204).send(null);
      },
    );
    done();
  };

function presentMember(member: MemberDetails): Static<typeof MemberRecord> {
  return {
    user_id: member.userId,
    email: member.email,
    name: member.name,
    avatar_url: member.avatarUrl,
    role: member.role,
    created_at: member.createdAt.toISOString(),
  };
}
