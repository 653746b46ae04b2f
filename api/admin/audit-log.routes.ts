import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { StaffAuditLogService, StaffLogEntry } from '../../domain/staff/staff-audit-log.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { id, nullableText, problems, ref, resource, strictObject, text, timestamp } from '../schemas.ts';
import { parseTime } from '../time.ts';

export const StaffAuditEntryRecord = resource(
  'staff_audit_entry',
  {
    id: id('Id of the entry (sau_…).'),
    staff: strictObject({ id: text(128), name: nullableText(320) }),
    session_id: text(128),
    action: text(100, { description: '<resource>.<what was done>, for example organization.suspended.' }),
    resource: strictObject({ type: text(64), id: text(320) }),
    organization: Type.Union([strictObject({ id: text(128), name: nullableText(320) }), Type.Null()], {
      description: 'The organization whose own log has the same entry; null for a change of none or several.',
    }),
    reason: nullableText(2_000),
    details: Type.Record(Type.String({ maxLength: 100 }), Type.Unknown()),
    ip: text(64),
    request_id: text(64),
    created_at: timestamp(),
  },
  { $id: 'StaffAuditEntry', title: 'StaffAuditEntry' },
);

export const staffAuditLogRoutes =
  ({
    staffAuditLog,
    lists,
  }: {
    staffAuditLog: StaffAuditLogService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/audit-log',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'staffAuditLog.list',
          summary: 'List changes by staff: who made them, why, from where',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            action: Type.Optional(
              text(100, { minLength: 1, description: 'Only this action, for example inbox.created.' }),
            ),
            staff_id: Type.Optional(id('User id of a staff member.')),
            resource_id: Type.Optional(text(320, { minLength: 1, description: 'What was changed.' })),
            org_id: Type.Optional(id('Organization whose log has the entry, too.')),
            after: Type.Optional(
              Type.String({
                format: 'date-time',
                maxLength: 40,
                description: 'Only entries at or after this time.',
              }),
            ),
            before: Type.Optional(
              Type.String({
                format: 'date-time',
                maxLength: 40,
                description: 'Only entries before this time.',
              }),
            ),
          }),
          response: { 200: listOf(ref(StaffAuditEntryRecord)), ...problems() },
        },
      },
      async (request) => {
        const { query, staff } = request;
        const page = await staffAuditLog.list(
          staff,
          {
            ...(query.action === undefined ? {} : { action: query.action }),
            ...(query.staff_id === undefined ? {} : { staffId: query.staff_id }),
            ...(query.resource_id === undefined ? {} : { resourceId: query.resource_id }),
            ...(query.org_id === undefined ? {} : { organizationId: query.org_id }),
            ...(query.after === undefined ? {} : { after: parseTime('/query/after', query.after) }),
            ...(query.before === undefined ? {} : { before: parseTime('/query/before', query.before) }),
          },
          lists.read(request),
        );
        return lists.present(request, page, presentEntry);
      },
    );
    done();
  };

function presentEntry(entry: StaffLogEntry): Static<typeof StaffAuditEntryRecord> {
  return {
    object: 'staff_audit_entry',
    id: entry.id,
    staff: { id: entry.staffId, name: entry.staffName },
    session_id: entry.sessionId,
    action: entry.action,
    resource: { type: entry.resourceType, id: entry.resourceId },
    organization:
      entry.organizationId === null ? null : { id: entry.organizationId, name: entry.organizationName },
    reason: entry.reason,
    details: entry.details,
    ip: entry.ip,
    request_id: entry.requestId,
    created_at: entry.createdAt.toISOString(),
  };
}
