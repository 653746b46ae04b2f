import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { ApiKeyService } from '../../domain/api-keys/api-key.service.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { MemberDetails, MemberService } from '../../domain/organizations/member.service.ts';
import { ApiKeyRecord, presentApiKey } from '../api-keys/api-keys.schemas.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableText,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const MemberRecord = resource(
  'member',
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
  {
    role: enumOf(MEMBER_ROLES),
    revoke_keys: Type.Optional(
      Type.Boolean({
        description:
          'With a lower role: revoke the API keys that the person created. Default: false, the keys only lose the permissions that the new role lacks.',
      }),
    ),
  },
  { $id: 'ChangeRole', title: 'ChangeRole' },
);
export const OffboardMember = strictObject(
  {
    revoke_keys: Type.Boolean({
      default: true,
      description: 'Also revokes the API keys that the person created, with the keys of those keys.',
    }),
  },
  { $id: 'OffboardMember', title: 'OffboardMember' },
);
export const OffboardingRecord = resource(
  'offboarding',
  {
    user_id: id('Id of the user (usr_…).'),
    keys_revoked: Type.Integer({ minimum: 0 }),
    invitations_revoked: Type.Integer({
      minimum: 0,
      description: 'Open invitations by the person, and to their address.',
    }),
    connections_ended: Type.Integer({
      minimum: 0,
      description: 'Connections of MCP hosts that the person had granted.',
    }),
    remaining_keys: Type.Array(ref(ApiKeyRecord), {
      maxItems: 100,
      description:
        'Keys of the person that still work, at most 100, newest first; GET /api-keys?created_by_user_id= lists all. The person may know their tokens: rotate them.',
    }),
  },
  { $id: 'Offboarding', title: 'Offboarding' },
);
export const MinimalOffboarding = minimalOf(OffboardingRecord, [
  'user_id',
  'keys_revoked',
  'invitations_revoked',
  'connections_ended',
]);
export const MinimalMember = minimalOf(MemberRecord, ['user_id', 'role']);
const MAX_KEYS_SHOWN = 100;
const MemberParams = strictObject({ userId: id('Id of the user (usr_…).') });

export interface MemberRouteDependencies {
  members: MemberService;
  apiKeys: ApiKeyService;
  lists: Lists;
}

export const memberRoutes =
  ({ members, apiKeys, lists }: MemberRouteDependencies): FastifyPluginCallbackTypebox =>
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
        config: {
          permission: 'members:manage',
          readPermission: 'members:read',
          minimalResponse: MinimalMember,
        },
        schema: {
          operationId: 'members.update',
          summary: 'Change the role of a member',
          description:
            'Takes effect with the next request of the member. No one grants, changes or removes a role above their own; an organization keeps at least one owner. Giving or taking the role owner requires a sign-in within the last ten minutes. With a lower role, the API keys that the person created lose the permissions that it lacks.',
          tags: ['Organization'],
          params: MemberParams,
          body: ref(ChangeRole),
          response: { 200: ref(MemberRecord), ...changeProblems() },
        },
      },
      async ({ scope, params, body }) =>
        presentMember(
          await members.changeRole(scope, params.userId, body.role, {
            revokeKeys: body.revoke_keys ?? false,
          }),
        ),
    );

    app.delete(
      '/org/members/:userId',
      {
        config: { permission: 'members:manage' },
        schema: {
          operationId: 'members.remove',
          summary: 'Remove a member',
          description:
            'Their sessions lose access to the organization with their next request, and the API keys that they created are revoked, with their open invitations. Their account stays. To keep the keys: POST /org/members/{userId}/offboard.',
          tags: ['Organization'],
          params: MemberParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await members.remove(scope, params.userId, { revokeKeys: true });
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/org/members/:userId/offboard',
      {
        config: {
          permission: 'members:manage',
          readPermission: 'keys:manage',
          minimalResponse: MinimalOffboarding,
          bodyMayBeEmpty: true,
        },
        schema: {
          operationId: 'members.offboard',
          summary: 'Remove a person who has left',
          description:
            'Removes the member, revokes their open invitations and, unless revoke_keys is false, the API keys that they created. Returns the keys that still work.',
          tags: ['Organization'],
          params: MemberParams,
          body: ref(OffboardMember),
          response: { 200: ref(OffboardingRecord), ...postProblems() },
        },
      },
      async ({ scope, params: { userId }, body: { revoke_keys: revokeKeys } }) => {
        const removal = await members.remove(scope, userId, { revokeKeys });
        const page = { limit: MAX_KEYS_SHOWN, order: 'desc' as const };
        const { items } = await apiKeys.list(scope, { createdByUserId: userId }, page);
        return {
          object: 'offboarding' as const,
          user_id: userId,
          keys_revoked: removal.keysRevoked,
          invitations_revoked: removal.invitationsRevoked,
          connections_ended: removal.connectionsEnded,
          remaining_keys: items.map(presentApiKey),
        };
      },
    );
    done();
  };

function presentMember(member: MemberDetails): Static<typeof MemberRecord> {
  return {
    object: 'member',
    user_id: member.userId,
    email: member.email,
    name: member.name,
    avatar_url: member.avatarUrl,
    role: member.role,
    created_at: member.createdAt.toISOString(),
  };
}
