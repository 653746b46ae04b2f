import { type RawBuilder, sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createdIn } from '../../platform/database/creation-range.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { type AuditActorKind, AuditEntryEntity } from './audit-entry.entity.ts';

export interface AuditLogEntry {
  id: string;
  action: string;
  actorKind: AuditActorKind;
  actorId: string;
  /** Current name or address of the user, or name of the key or connected client; `Staff` for staff; null if the actor no longer exists. */
  actorName: string | null;
  credentialId: string | null;
  resourceType: string;
  resourceId: string;
  /** Current name or address of the resource; null if it no longer exists, has none, or the reader is staff. */
  resourceName: string | null;
  /** Whether the resource has a name and still exists; a revoked key, a deleted webhook endpoint and a purged inbox keep their names. */
  resourceExists: boolean;
  reason: string | null;
  details: Record<string, unknown>;
  ip: string | null;
  requestId: string | null;
  createdAt: Date;
}

export interface AuditFilter {
  action?: string;
  actorId?: string;
  resourceType?: string;
  resourceId?: string;
  /** Recorded at or after this time. */
  after?: Date;
  /** Recorded before this time. */
  before?: Date;
}

export type AuditLogService = ReturnType<typeof createAuditLogService>;

export function createAuditLogService({ database }: { database: Database }) {
  return {
    list: (scope: Scope, filter: AuditFilter, page: PageRequest): Promise<Page<AuditLogEntry>> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        return listAuditEntries(db, scope.organizationId, {
          filter,
          page,
          resource: { name: resourceName(), exists: resourceExists() },
        });
      }),
  };
}

/** In the transaction of a tenant: another tenant's resource has no name. */
const resourceName = () => sql<string | null>`case audit_entries.resource_type
  when 'user' then (select coalesce(users.name, users.email) from users where users.id = audit_entries.resource_id)
  when 'api_key' then (select name from api_keys where api_keys.id = audit_entries.resource_id)
  when 'connection' then (select client_name from connections where connections.id = audit_entries.resource_id)
  when 'organization' then (select name from organizations where organizations.id = audit_entries.resource_id)
  when 'environment' then (select name from environments where environments.id = audit_entries.resource_id)
  when 'inbox' then (select email from inboxes where inboxes.id = audit_entries.resource_id)
  when 'domain' then (select domain_name from domains where domains.id = audit_entries.resource_id)
  when 'invitation' then (select email from invitations where invitations.id = audit_entries.resource_id)
  when 'sso_configuration' then (select name from sso_configurations where sso_configurations.id = audit_entries.resource_id)
  when 'webhook_endpoint' then (
    select coalesce(nullif(trim(description), ''), substring(url from '^https?://([^/?#]+)')) from webhook_endpoints
    where webhook_endpoints.id = audit_entries.resource_id
  )
end`;

const resourceExists = () => sql<boolean>`case audit_entries.resource_type
  when 'api_key' then exists (select from api_keys where api_keys.id = audit_entries.resource_id and revoked_at is null)
  when 'inbox' then exists (select from inboxes where inboxes.id = audit_entries.resource_id and purged_at is null)
  when 'webhook_endpoint' then exists (
    select from webhook_endpoints where webhook_endpoints.id = audit_entries.resource_id and deleted_at is null
  )
  else ${resourceName()} is not null
end`;

/** Reads a page of an organization's log. Also for staff, whose role sees no names of resources. */
export function listAuditEntries(
  db: Db,
  organizationId: string,
  {
    filter,
    page,
    resource = { name: sql<string | null>`null`, exists: sql<boolean>`false` },
  }: {
    filter: AuditFilter;
    page: PageRequest;
    resource?: { name: RawBuilder<string | null>; exists: RawBuilder<boolean> };
  },
): Promise<Page<AuditLogEntry>> {
  const { after: from, before } = filter;
  const query = db
    .selectFrom('audit_entries')
    .select(columnsOf(AuditEntryEntity))
    .select((eb) =>
      eb
        .case()
        .when('actor_kind', '=', 'staff')
        .then('Staff')
        .else(
          eb.fn.coalesce(
            eb
              .selectFrom('users')
              .select(({ fn }) => fn.coalesce('users.name', 'users.email').as('name'))
              .whereRef('users.id', '=', 'audit_entries.actor_id'),
            eb
              .selectFrom('api_keys')
              .select('api_keys.name')
              .whereRef('api_keys.id', '=', 'audit_entries.actor_id'),
            eb
              .selectFrom('connections')
              .select('connections.client_name')
              .whereRef('connections.id', '=', 'audit_entries.actor_id'),
          ),
        )
        .end()
        .as('actorName'),
    )
    .select([resource.name.as('resourceName'), resource.exists.as('resourceExists')])
    .where('org_id', '=', organizationId)
    .where(({ and }) =>
      and({
        action: filter.action,
        actor_id: filter.actorId,
        resource_type: filter.resourceType,
        resource_id: filter.resourceId,
      }),
    )
    .where(({ and }) => and(createdIn('auditEntry', 'audit_entries', { from, before })));
  return findPage(query, 'audit_entries.id', page);
}
