import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { AuditFilter, AuditLogEntry, AuditLogService } from '../../domain/audit/audit-log.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  enumOf,
  id,
  nullableText,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { parseTime } from '../time.ts';

export const AuditEntryRecord = resource(
  'audit_entry',
  {
    id: id('Id of the entry (aud_…).'),
    action: text(100, { description: '<resource>.<what was done>, for example policies.updated.' }),
    actor: strictObject({
      kind: enumOf(['user', 'api_key', 'connection', 'staff', 'system']),
      id: text(128),
      name: nullableText(320, {
        description: 'Current name of the user or key; `Staff` for staff; null if it no longer exists.',
      }),
    }),
    credential_id: nullableText(128, { description: 'Session or key that made the request.' }),
    resource: strictObject({
      type: text(64),
      id: text(320, { description: 'Id, or the address or domain of a suppression or list entry.' }),
      name: nullableText(2_048, {
        description:
          'Current name or address, such as the email of an inbox; null if it no longer exists or has none.',
      }),
    }),
    reason: nullableText(2_000),
    details: Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
      description: 'What changed. Values that a change replaced are in previous.',
    }),
    ip: nullableText(64),
    request_id: nullableText(64),
    created_at: timestamp(),
  },
  { $id: 'AuditEntry', title: 'AuditEntry' },
);

export const auditFilterQuery = {
  action: Type.Optional(
    text(100, { minLength: 1, description: 'Only this action, for example inbox.created.' }),
  ),
  actor_id: Type.Optional(id('User or key that made the change.')),
  resource_type: Type.Optional(text(64, { minLength: 1, description: 'For example api_key.' })),
  resource_id: Type.Optional(text(320, { minLength: 1, description: 'What was changed.' })),
  after: Type.Optional(
    Type.String({ format: 'date-time', maxLength: 40, description: 'Only entries at or after this time.' }),
  ),
  before: Type.Optional(
    Type.String({ format: 'date-time', maxLength: 40, description: 'Only entries before this time.' }),
  ),
};
const AuditQuery = strictObject({ ...pageQuery, ...auditFilterQuery });

/** @throws AppError `validation_error` for an invalid time. */
export function readAuditFilter(query: Omit<Static<typeof AuditQuery>, 'limit' | 'order'>): AuditFilter {
  const {
    action,
    actor_id: actorId,
    resource_type: resourceType,
    resource_id: resourceId,
    after,
    before,
  } = query;
  return {
    ...(action === undefined ? {} : { action }),
    ...(actorId === undefined ? {} : { actorId }),
    ...(resourceType === undefined ? {} : { resourceType }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(after === undefined ? {} : { after: parseTime('/query/after', after) }),
    ...(before === undefined ? {} : { before: parseTime('/query/before', before) }),
  };
}

export const auditLogRoutes =
  ({ auditLog, lists }: { auditLog: AuditLogService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/audit-log',
      {
        config: { permission: 'audit:read' },
        schema: {
          operationId: 'auditLog.list',
          summary: 'List changes: who made them, from where, with which credential',
          tags: ['Organization'],
          querystring: AuditQuery,
          response: { 200: listOf(ref(AuditEntryRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await auditLog.list(request.scope, readAuditFilter(request.query), lists.read(request));
        return lists.present(request, page, presentAuditEntry);
      },
    );
    done();
  };

export function presentAuditEntry(entry: AuditLogEntry): Static<typeof AuditEntryRecord> {
  return {
    object: 'audit_entry',
    id: entry.id,
    action: entry.action,
    actor: { kind: entry.actorKind, id: entry.actorId, name: entry.actorName },
    credential_id: entry.credentialId,
    resource: { type: entry.resourceType, id: entry.resourceId, name: entry.resourceName },
    reason: entry.reason,
    details: entry.details,
    ip: entry.ip,
    request_id: entry.requestId,
    created_at: entry.createdAt.toISOString(),
  };
}
