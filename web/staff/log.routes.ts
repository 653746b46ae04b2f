import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { strictObject } from '../../api/schemas.ts';
import type { StaffAuditLogService } from '../../domain/staff/staff-audit-log.service.ts';
import { OptionalText } from '../shell/forms.ts';
import type { Console } from './console.ts';
import { filled, nextPage } from './filters.ts';

export interface LogPageDependencies {
  console: Console;
  staffAuditLog: StaffAuditLogService;
  lists: Lists;
}

/** The log of the service: every change by staff. */
export const logPages =
  ({ console, staffAuditLog, lists }: LogPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/admin/log',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.log',
          querystring: strictObject({
            ...pageQuery,
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
          lists.read(request),
        );
        return console.send(request, reply, {
          template: 'staff/log',
          title: 'Log',
          data: {
            filter: request.query,
            log: page.items,
            nextPage: nextPage(
              request,
              lists.present(request, page, () => null),
            ),
          },
        });
      },
    );
    done();
  };
