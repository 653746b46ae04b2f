import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Note } from '../../api/admin/note.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { StaffAdministrationService } from '../../domain/administration/staff-administration.service.ts';
import { STAFF_ROLES } from '../../domain/staff/staff-scope.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, staffListQuery } from './console.ts';

export interface StaffConsoleDependencies {
  console: Console;
  staffAdministration: StaffAdministrationService;
}

/** Who operates the service. */
export const staffConsole =
  ({ console, staffAdministration }: StaffConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const page = await staffAdministration.list(request.staff, console.readPage(request));
      return console.send(request, reply, {
        template: 'staff/staff',
        title: 'Staff',
        problem,
        data: {
          members: page.items,
          nextPage: console.nextPage(request, page),
          roles: STAFF_ROLES,
          ownId: request.staff.staffId,
        },
      });
    };
    app.get(
      '/admin/staff',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.staff',
          querystring: staffListQuery({}),
        },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/staff', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.addStaff',
        body: strictObject({ email: text(254, { minLength: 3 }), role: enumOf(STAFF_ROLES), note: Note }),
      },
      work: ({ staff, body }) => staffAdministration.add(staff, body),
      show,
    });

    console.form(app, '/admin/staff/role', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.changeStaffRole',
        body: strictObject({ user_id: text(64), role: enumOf(STAFF_ROLES), note: Note }),
      },
      work: ({ staff, body: { user_id: userId, ...change } }) =>
        staffAdministration.changeRole(staff, userId, change),
      show,
    });

    console.form(app, '/admin/staff/remove', {
      config: { staff: 'admin' },
      schema: { operationId: 'console.removeStaff', body: strictObject({ user_id: text(64), note: Note }) },
      work: ({ staff, body }) => staffAdministration.remove(staff, body.user_id, body.note),
      show,
    });
    done();
  };
