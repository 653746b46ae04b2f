import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Note } from '../../api/admin/note.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { StaffAdministrationService } from '../../domain/administration/staff-administration.service.ts';
import { STAFF_ROLES } from '../../domain/staff/staff-scope.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, NoticeQuery } from './console.ts';
import { nextPage } from './filters.ts';

export interface StaffConsoleDependencies {
  console: Console;
  staffAdministration: StaffAdministrationService;
  lists: Lists;
}

const LATEST = { limit: 25, order: 'desc' } as const;

/** Who operates the service. */
export const staffConsole =
  ({ console, staffAdministration, lists }: StaffConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const page = await staffAdministration.list(request.staff, problem ? LATEST : lists.read(request));
      return console.send(request, reply, {
        template: 'staff/staff',
        title: 'Staff',
        problem,
        data: {
          members: page.items,
          nextPage: problem
            ? undefined
            : nextPage(
                request,
                lists.present(request, page, () => null),
              ),
          roles: STAFF_ROLES,
          ownId: request.staff.staffId,
        },
      });
    };
    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>) =>
      console.finish(reply, { work, back: '/admin/staff', show: (problem) => show(request, reply, problem) });

    app.get(
      '/admin/staff',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.staff',
          querystring: strictObject({ ...pageQuery, ...NoticeQuery.properties }),
        },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/admin/staff',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.addStaff',
          body: strictObject({ email: text(254, { minLength: 3 }), role: enumOf(STAFF_ROLES), note: Note }),
        },
      },
      async (request, reply) => finish(request, reply, staffAdministration.add(request.staff, request.body)),
    );

    app.post(
      '/admin/staff/role',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.changeStaffRole',
          body: strictObject({ user_id: text(64), role: enumOf(STAFF_ROLES), note: Note }),
        },
      },
      async (request, reply) => {
        const { user_id: userId, ...change } = request.body;
        return finish(request, reply, staffAdministration.changeRole(request.staff, userId, change));
      },
    );

    app.post(
      '/admin/staff/remove',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.removeStaff',
          body: strictObject({ user_id: text(64), note: Note }),
        },
      },
      async (request, reply) => {
        const { user_id: userId, note } = request.body;
        return finish(request, reply, staffAdministration.remove(request.staff, userId, note));
      },
    );
    done();
  };
