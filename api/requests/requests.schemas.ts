import { type Static, Type } from 'typebox';
import { CREDENTIAL_KINDS } from '../../domain/requests/api-request.entity.ts';
import type { ListedRequest } from '../../domain/requests/request.service.ts';
import { timeOfId } from '../../platform/ids.ts';
import { pageQuery } from '../lists.ts';
import {
  enumOf,
  id,
  MAX_ID_LENGTH,
  nullableText,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const RequestsQuery = strictObject({
  ...pageQuery,
  status: Type.Optional(
    Type.Integer({ minimum: 100, maximum: 599, description: 'Only calls with this HTTP status.' }),
  ),
  credential_id: Type.Optional(
    text(MAX_ID_LENGTH, { minLength: 1, description: 'Only calls of this key (key_…) or person (usr_…).' }),
  ),
  failed: Type.Optional(
    Type.Boolean({ description: 'true: only calls that failed, with status 400 or higher.' }),
  ),
  path: Type.Optional(
    text(1024, {
      minLength: 1,
      description: 'Only calls whose path starts with this, with or without /api/v1: /messages.',
    }),
  ),
  since: Type.Optional(
    Type.String({ format: 'date-time', maxLength: 40, description: 'Only calls at or after this time.' }),
  ),
  until: Type.Optional(
    Type.String({ format: 'date-time', maxLength: 40, description: 'Only calls before this time.' }),
  ),
});

export const RequestRecord = resource(
  'request',
  {
    id: id('Request id (req_…): the x-request-id of the response.'),
    env_id: id('The environment in which the request worked.'),
    method: text(16),
    path: text(1024, {
      description:
        'Without query. What is neither an id nor a word of the API is left out: /api/v1/suppressions/{email}.',
    }),
    status: Type.Integer({ minimum: 100, maximum: 599 }),
    code: nullableText(64, { description: 'Code of the problem; null if the call succeeded.' }),
    credential: strictObject({
      kind: enumOf(CREDENTIAL_KINDS),
      id: id('The key (key_…), the connection (con_…) or the person (usr_…).'),
      name: nullableText(320, {
        description: 'Name of the key, the connected program or the person; null if it no longer exists.',
      }),
    }),
    duration_ms: Type.Integer({ minimum: 0, description: 'Until the end of the response.' }),
    created_at: timestamp('When the request arrived.'),
  },
  { $id: 'Request', title: 'Request' },
);

export function presentRequest(request: ListedRequest): Static<typeof RequestRecord> {
  return {
    object: 'request',
    id: request.id,
    env_id: request.environmentId,
    method: request.method,
    path: request.path,
    status: request.status,
    code: request.code,
    credential: {
      kind: request.credentialKind,
      id: request.credentialId,
      name: request.credentialName,
    },
    duration_ms: request.durationMs,
    created_at: timeOfId(request.id).toISOString(),
  };
}
