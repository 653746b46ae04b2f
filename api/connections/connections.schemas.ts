import { type Static, Type } from 'typebox';
import type { ConnectionRow } from '../../domain/connections/connection.service.ts';
import { CONNECTION_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { enumOf, id, nullableText, nullableTimestamp, resource, text, timestamp } from '../schemas.ts';

export const ConnectionRecord = resource(
  'connection',
  {
    id: id('Connection id (con_…).'),
    user_id: id('The person who granted it (usr_…).'),
    client_id: text(1_024, {
      description: 'The registered id of the client, or the URL of its metadata document.',
    }),
    client_name: text(80, { description: 'What the client calls itself; may be empty. Not verified.' }),
    redirect_to: text(1_024, {
      description: 'Origin or scheme of the address to which the client’s codes are sent.',
    }),
    permissions: Type.Array(enumOf(CONNECTION_PERMISSIONS), {
      maxItems: CONNECTION_PERMISSIONS.length,
      description: 'What the person granted. A call has those of them that the person still has.',
    }),
    env_id: nullableText(128, { description: 'The environment that it is bound to; null: every one.' }),
    inbox_id: nullableText(128, { description: 'The inbox that it is bound to; null: every one.' }),
    created_at: timestamp('When the person consented.'),
    expires_at: timestamp('When it ends by itself.'),
    last_used_at: nullableTimestamp('Null: not used yet. Updated at most once a minute.'),
  },
  { $id: 'Connection', title: 'Connection' },
);

export const presentConnection = (connection: ConnectionRow): Static<typeof ConnectionRecord> => ({
  object: 'connection',
  id: connection.id,
  user_id: connection.userId,
  client_id: connection.clientId,
  client_name: connection.clientName,
  redirect_to: connection.redirectTo,
  permissions: connection.permissions,
  env_id: connection.environmentId,
  inbox_id: connection.inboxId,
  created_at: connection.createdAt.toISOString(),
  expires_at: connection.expiresAt.toISOString(),
  last_used_at: connection.lastUsedAt?.toISOString() ?? null,
});
