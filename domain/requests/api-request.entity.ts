import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';

export const CREDENTIAL_KINDS = ['api_key', 'connection', 'user'] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/**
 * An answered call of the API. The id is that of the request, which begins with its time: so pages, and the deletion of old
 * rows, follow the primary key. There is no foreign key, because rows are written in bulk and live for seven days.
 */
export const ApiRequestEntity = defineEntity({
  name: 'ApiRequest',
  tableName: 'api_requests',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['credentialId', 'id'] },
    {
      name: 'api_requests_errors_index',
      expression: `create index "api_requests_errors_index" on "api_requests" ("org_id", "status", "id") where "status" >= 400`,
    },
  ],
  properties: {
    /** The id of the request (req_…), as in `x-request-id`. */
    id: primaryId(),
    organizationId: idColumn().fieldName('org_id'),
    /** Where the request worked. */
    environmentId: idColumn().fieldName('env_id'),
    method: p.text(),
    /** Without query, and only with ids and words of the API: neither addresses nor other text of the caller. */
    path: p.text(),
    status: p.smallint(),
    /** Code of the problem; null without one. */
    code: p.text().strictNullable(),
    credentialKind: p.text().$type<CredentialKind>(),
    /** The key, the connection or the user. */
    credentialId: idColumn(),
    durationMs: p.integer(),
  },
});

export type ApiRequest = InferEntity<typeof ApiRequestEntity>;
