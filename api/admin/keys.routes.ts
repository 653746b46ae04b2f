import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import {
  type AdministeredKey,
  KEY_STATUSES,
  type KeyAdministrationService,
} from '../../domain/administration/key-administration.service.ts';
import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import {
  enumOf,
  id,
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
import { parseTime } from '../time.ts';
import { Note } from './note.ts';

export const AdminKeyRecord = resource(
  'api_key',
  {
    id: id('Key id (key_…).'),
    org_id: text(128),
    organization_name: text(320),
    env_id: nullableText(128, { description: 'Null: every environment.' }),
    inbox_id: nullableText(128, { description: 'Null: every inbox.' }),
    name: text(320),
    last_four: text(4),
    permissions: Type.Array(text(64), { maxItems: KEY_PERMISSIONS.length }),
    allowed_cidrs: Type.Array(text(64), { maxItems: 100 }),
    status: enumOf(KEY_STATUSES),
    created_by_key_id: nullableText(128),
    created_by_user_id: nullableText(128, { description: 'Null for a key of the installation.' }),
    expires_at: nullableTimestamp('Null: does not expire.'),
    revoked_at: nullableTimestamp(),
    last_used_at: nullableTimestamp('Null: never used.'),
    created_at: timestamp(),
  },
  { $id: 'AdminKey', title: 'AdminKey' },
);

export const adminKeyRoutes =
  ({
    keyAdministration: keys,
    lists,
  }: {
    keyAdministration: KeyAdministrationService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/keys',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminKeys.list',
          summary: 'List the API keys of all organizations',
          tags: ['Admin'],
          querystring: strictObject({
            ...pageQuery,
            org_id: Type.Optional(id('Only keys of this organization.')),
            created_by_user_id: Type.Optional(id('Only keys of this person.')),
            status: Type.Optional(enumOf(KEY_STATUSES, { description: 'Only those with this status.' })),
            last_used_before: Type.Optional(
              Type.String({
                format: 'date-time',
                maxLength: 40,
                description: 'Only keys that have not been used since this time, or never.',
              }),
            ),
          }),
          response: { 200: listOf(ref(AdminKeyRecord)), ...problems() },
        },
      },
      async (request) => {
        const { org_id, created_by_user_id, status, last_used_before } = request.query;
        const filter = {
          ...(org_id === undefined ? {} : { organizationId: org_id }),
          ...(created_by_user_id === undefined ? {} : { createdByUserId: created_by_user_id }),
          ...(status === undefined ? {} : { status }),
          ...(last_used_before === undefined
            ? {}
            : { lastUsedBefore: parseTime('/query/last_used_before', last_used_before) }),
        };
        const page = await keys.list(request.staff, filter, lists.read(request));
        return lists.present(request, page, presentAdminKey);
      },
    );

    app.post(
      '/keys/:id/revoke',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminKeys.revoke',
          summary: 'Revoke an API key',
          description: 'Takes effect with its next request. The owners of the organization get an email.',
          tags: ['Admin'],
          params: strictObject({ id: id('Key id (key_…).') }),
          body: strictObject(
            {
              note: Note,
              children: Type.Boolean({
                default: false,
                description: 'Also revoke the keys that it created, and those that they created.',
              }),
            },
            { title: 'RevokeApiKey' },
          ),
          response: { 200: ref(AdminKeyRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }) => presentAdminKey(await keys.revoke(staff, params.id, body)),
    );
    done();
  };

function presentAdminKey(key: AdministeredKey): Static<typeof AdminKeyRecord> {
  return {
    object: 'api_key',
    id: key.id,
    org_id: key.organizationId,
    organization_name: key.organizationName,
    env_id: key.environmentId,
    inbox_id: key.inboxId,
    name: key.name,
    last_four: key.lastFour,
    permissions: key.permissions,
    allowed_cidrs: key.allowedCidrs,
    status: key.status,
    created_by_key_id: key.createdByKeyId,
    created_by_user_id: key.createdByUserId,
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    created_at: key.createdAt.toISOString(),
  };
}
