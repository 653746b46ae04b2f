import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type {
  StaffAdministrationService,
  StaffMemberSummary,
} from '../../domain/administration/staff-administration.service.ts';
import { STAFF_ROLES } from '../../domain/staff/staff-scope.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableText,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { Note } from './note.ts';

export const StaffMemberRecord = resource(
  'staff_member',
  {
    user_id: id('User id (usr_…).'),
    email: text(320),
    name: nullableText(320),
    role: enumOf(STAFF_ROLES),
    active: Type.Boolean({ description: 'False: the account is suspended or deleted.' }),
    mfa_enabled: Type.Boolean({ description: 'False: /admin stays closed.' }),
    last_seen_at: nullableTimestamp('Null for a person without sessions.'),
    created_by: nullableText(128, { description: 'Null for the command admin:create.' }),
    created_at: timestamp(),
  },
  { $id: 'StaffMember', title: 'StaffMember' },
);

const MemberParams = strictObject({ userId: id('User id (usr_…).') });
const Role = enumOf(STAFF_ROLES, {
  description: 'support reads, and revokes sessions; admin may do everything.',
});

export const staffMemberRoutes =
  ({
    staffAdministration: members,
    lists,
  }: {
    staffAdministration: StaffAdministrationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/staff',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'staff.list',
          summary: 'List the staff of the service',
          tags: ['Admin'],
          querystring: strictObject(pageQuery),
          response: { 200: listOf(ref(StaffMemberRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(request, await members.list(request.staff, lists.read(request)), presentStaffMember),
    );

    app.post(
      '/staff',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'staff.add',
          summary: 'Make a person staff',
          description: 'For an existing account. `npm run admin:create` also creates one.',
          tags: ['Admin'],
          body: strictObject(
            { email: text(320, { minLength: 3 }), role: Role, note: Note },
            { title: 'AddStaffMember' },
          ),
          response: { 201: ref(StaffMemberRecord), ...postProblems() },
        },
      },
      async ({ staff, body }, reply) => {
        reply.code(201);
        return presentStaffMember(await members.add(staff, body));
      },
    );

    app.patch(
      '/staff/:userId',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'staff.changeRole',
          summary: 'Change the role of a staff member',
          description: 'Not your own: one admin is always left.',
          tags: ['Admin'],
          params: MemberParams,
          body: strictObject({ role: Role, note: Note }, { title: 'ChangeStaffRole' }),
          response: { 200: ref(StaffMemberRecord), ...changeProblems() },
        },
      },
      async ({ staff, params, body }) =>
        presentStaffMember(await members.changeRole(staff, params.userId, body)),
    );

    app.delete(
      '/staff/:userId',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'staff.remove',
          summary: 'End the role of a staff member',
          description:
            'Holds with their next request. Their account stays. Not your own: one admin is always left.',
          tags: ['Admin'],
          params: MemberParams,
          querystring: strictObject({ note: Note }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ staff, params, query }, reply) => {
        await members.remove(staff, params.userId, query.note);
        return reply.code(204).send(null);
      },
    );
    done();
  };

function presentStaffMember(member: StaffMemberSummary): Static<typeof StaffMemberRecord> {
  return {
    object: 'staff_member',
    user_id: member.userId,
    email: member.email,
    name: member.name,
    role: member.role,
    active: member.isActive,
    mfa_enabled: member.factorCount > 0,
    last_seen_at: member.lastSeenAt?.toISOString() ?? null,
    created_by: member.createdBy,
    created_at: member.createdAt.toISOString(),
  };
}
