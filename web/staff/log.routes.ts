import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { StaffAuditLogService } from '../../domain/staff/staff-audit-log.service.ts';
import { OptionalText } from '../shell/forms.ts';
import { type Console, staffListQuery } from './console.ts';
import { filled } from './filters.ts';

export interface LogPageDependencies {
  console: Console;
  staffAuditLog: StaffAuditLogService;
}

/** The log of the service: every change by staff. */
export const logPages =
  ({ console, staffAuditLog }: LogPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/admin/log',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.log',
          querystring: staffListQuery({
            action: OptionalText(100),
            resource_id: OptionalText(320),
            staff_id: OptionalText(64),
          }),
        },
      },
      async (request, reply) => {
        const { action, resource_id: resourceId, staff_id: staffId } = request.query;
        const page = await staffAuditLog.list(
          request.staff,
          filled({ action, resourceId, staffId }),
          console.readPage(request),
        );
        return console.send(request, reply, {
          template: 'staff/log',
          title: 'Log',
          data: {
            filter: request.query,
            log: page.items,
            nextPage: console.nextPage(request, page),
          },
        });
      },
    );
    done();
  };
