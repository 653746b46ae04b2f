import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import { ACCOUNT_STATUSES } from '../../domain/administration/find-users.ts';
import type {
  AccessChange,
  UserAdministrationService,
} from '../../domain/administration/user-administration.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { enumOf, id, postProblems, problems, ref, resource, strictObject, text } from '../schemas.ts';
import { LeaveWithoutBreakGlass, Note } from './note.ts';
import { AdminNote } from './organizations.schemas.ts';
import {
  AdminUserDetails,
  AdminUserRecord,
  presentAdminUser,
  presentAdminUserDetails,
} from './users.schemas.ts';

const UserParams = strictObject({ id: id('User id (usr_…).') });
const AccessChangeBody = strictObject(
  { note: Note, leave_without_break_glass: LeaveWithoutBreakGlass },
  { title: 'ChangeAccess' },
);

export const adminUserRoutes =
  ({
    userAdministration: users,
    lists,
  }: {
    userAdministration: UserAdministrationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/users',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminUsers.list',
          summary: 'List and search people',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            query: Type.Optional(
              text(320, { minLength: 1, description: 'Part of the address or name, or the id.' }),
            ),
            status: Type.Optional(
              enumOf(ACCOUNT_STATUSES, { description: 'Only accounts with this status.' }),
            ),
            org_id: Type.Optional(id('Only members of this organization.')),
            staff: Type.Optional(Type.Boolean({ description: 'Only staff, or only others.' })),
          }),
          response: { 200: listOf(ref(AdminUserRecord)), ...problems() },
        },
      },
      async (request) => {
        const { query, status, org_id: organizationId, staff: isStaff } = request.query;
        const filter = {
          ...(query === undefined ? {} : { query }),
          ...(status === undefined ? {} : { status }),
          ...(organizationId === undefined ? {} : { organizationId }),
          ...(isStaff === undefined ? {} : { isStaff }),
        };
        const page = await users.list(request.staff, filter, lists.read(request));
        return lists.present(request, page, presentAdminUser);
      },
    );

    app.get(
      '/users/:id',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminUsers.get',
          summary: 'Get a person with organizations, sessions and factors',
          tags: ['Admin'],
          params: UserParams,
          response: { 200: ref(AdminUserDetails), ...problems() },
        },
      },
      async ({ staff, params }) => presentAdminUserDetails(await users.get(staff, params.id)),
    );

    app.post(
      '/users/:id/suspend',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminUsers.suspend',
          summary: 'Suspend a person',
          description:
            'Their sessions end, and they cannot sign in. Organizations and API keys keep working. The person gets an email.',
          tags: ['Admin'],
          params: UserParams,
          body: AccessChangeBody,
          response: { 200: ref(AdminUserDetails), ...postProblems() },
        },
      },
      async ({ staff, params, body }) =>
        presentAdminUserDetails(await users.suspend(staff, params.id, readAccessChange(body))),
    );

    app.post(
      '/users/:id/reinstate',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminUsers.reinstate',
          summary: 'End the suspension of a person',
          tags: ['Admin'],
          params: UserParams,
          body: ref(AdminNote),
          response: { 200: ref(AdminUserDetails), ...postProblems() },
        },
      },
      async ({ staff, params, body }) =>
        presentAdminUserDetails(await users.reinstate(staff, params.id, body.note)),
    );

    app.post(
      '/users/:id/revoke-sessions',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminUsers.revokeSessions',
          summary: 'End all sessions and connections of a person',
          description: 'The person gets an email.',
          tags: ['Admin'],
          params: UserParams,
          body: ref(AdminNote),
          response: {
            200: resource(
              'session_revocation',
              { revoked: Type.Integer({ minimum: 0 }) },
              { title: 'RevokedSessions', description: 'Their number.' },
            ),
            ...postProblems(),
          },
        },
      },
      async ({ staff, params, body }) => ({
        object: 'session_revocation' as const,
        revoked: await users.revokeSessions(staff, params.id, body.note),
      }),
    );

    app.post(
      '/users/:id/reset-mfa',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminUsers.resetMfa',
          summary: 'Remove all second factors, passkeys and recovery codes of a person',
          description:
            'For a person who lost them all; make sure that it is the person who asks. Their sessions end, and they get an email.',
          tags: ['Admin'],
          params: UserParams,
          body: AccessChangeBody,
          response: { 200: ref(AdminUserDetails), ...postProblems() },
        },
      },
      async ({ staff, params, body }) =>
        presentAdminUserDetails(await users.resetMfa(staff, params.id, readAccessChange(body))),
    );
    done();
  };

const readAccessChange = (body: Static<typeof AccessChangeBody>): AccessChange => ({
  note: body.note,
  leaveWithoutBreakGlass: body.leave_without_break_glass ?? false,
});
