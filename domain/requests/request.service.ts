import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { ApiRequestEntity } from './api-request.entity.ts';
import { REQUEST_RETENTION_MS } from './delete-requests.ts';

export interface RequestFilter {
  status?: number | undefined;
  /** A key or a user. */
  credentialId?: string | undefined;
  /** Only calls that failed: 400 or higher. */
  failed?: boolean | undefined;
  /** Start of the path, with or without `/api/v1`. */
  path?: string | undefined;
  /** At or after this time. */
  since?: Date | undefined;
  /** Before this time. */
  until?: Date | undefined;
}

export interface ListedRequest extends RowOf<typeof ApiRequestEntity> {
  /** Name of the key, the connected program or the person; null if it no longer exists. */
  credentialName: string | null;
}

export type RequestService = ReturnType<typeof createRequestService>;

/** Calls of the API in the last seven days. */
export function createRequestService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}) {
  return {
    /** A credential that is bound to an environment or inbox sees only its own calls, and a selected environment limits all. */
    list: (scope: Scope, filter: RequestFilter, page: PageRequest): Promise<Page<ListedRequest>> =>
      database.read(scope, ({ db }) =>
        findPage(
          selectRequests(db, scope, { ...filter, since: latest(filter.since, now()) }),
          'api_requests.id',
          page,
        ),
      ),
  };
}

/** In the transaction of a tenant: credentials of others have no name. */
const CREDENTIAL_NAME = sql<string | null>`case api_requests.credential_kind
  when 'api_key' then (select name from api_keys where api_keys.id = api_requests.credential_id)
  when 'connection' then (select client_name from connections where connections.id = api_requests.credential_id)
  when 'user' then (select coalesce(users.name, users.email) from users where users.id = api_requests.credential_id)
end`;

const API_ROOT = '/api/v1';

function toWholePath(path: string): string {
  const local = path.startsWith('/') ? path : `/${path}`;
  return local.startsWith(API_ROOT) ? local : API_ROOT + local;
}

/** Older rows may still wait for their deletion. */
function latest(since: Date | undefined, now: Date): Date {
  return new Date(Math.max(since?.getTime() ?? 0, now.getTime() - REQUEST_RETENTION_MS));
}

function selectRequests(
  db: Db,
  scope: Scope,
  { status, credentialId, failed, path, since, until }: RequestFilter & { since: Date },
) {
  const findsErrors = failed === true || (status !== undefined && status >= 400);
  return db
    .selectFrom('api_requests')
    .select(columnsOf(ApiRequestEntity))
    .select(CREDENTIAL_NAME.as('credentialName'))
    .where('org_id', '=', scope.organizationId)
    .where('id', '>=', lowestIdAt('request', since))
    .where((eb) =>
      eb.and([
        ...(isOrganizationWide(scope) ? [] : [eb('credential_id', '=', scope.actor.id)]),
        ...(scope.environmentSelected ? [eb('env_id', '=', scope.environmentId)] : []),
        ...(status === undefined ? [] : [eb('status', '=', status)]),
        // Without it PostgreSQL does not see that the index of errors applies.
        ...(findsErrors ? [eb('status', '>=', 400)] : []),
        ...(path === undefined ? [] : [sql<boolean>`starts_with(path, ${toWholePath(path)})`]),
        ...(until === undefined ? [] : [eb('id', '<', lowestIdAt('request', until))]),
        ...(credentialId === undefined ? [] : [eb('credential_id', '=', credentialId)]),
      ]),
    );
}
