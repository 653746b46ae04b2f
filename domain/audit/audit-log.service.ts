import { sql } from '@mikro-orm/core';
import { createdWithin } from '../../platform/database/created-within.ts';
import type { Database } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import type { AuditActorKind } from './audit-entry.entity.ts';

export interface AuditLogEntry {
  id: string;
  action: string;
  actorKind: AuditActorKind;
  actorId: string;
  /** Current name or address of the user, or name of the key; `Staff` for staff; null if they no longer exist. */
  actorName: string | null;
  credentialId: string | null;
  resourceType: string;
  resourceId: string;
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

export interface AuditLogService {
  list(scope: Scope, filter: AuditFilter, page: PageRequest): Promise<Page<AuditLogEntry>>;
}

export function createAuditLogService({ database }: { database: Database }): AuditLogService {
  return {
    list: (scope, filter, page) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return listAuditEntries(reader, scope.organizationId, { filter, page });
      }),
  };
}

/** Reads a page of an organization's log. Staff read it, too. */
export async function listAuditEntries(
  reader: RowReader,
  organizationId: string,
  { filter, page }: { filter: AuditFilter; page: PageRequest },
): Promise<Page<AuditLogEntry>> {
  const rows = await reader.execute<SerializedRow<AuditLogEntry>[]>(sql`
    select a.id, a.action, a.actor_kind as "actorKind", a.actor_id as "actorId",
      case when a.actor_kind = 'staff' then 'Staff' else coalesce(
        (select coalesce(u.name, u.email) from users u where u.id = a.actor_id),
        (select k.name from api_keys k where k.id = a.actor_id)) end as "actorName",
      a.credential_id as "credentialId", a.resource_type as "resourceType", a.resource_id as "resourceId",
      a.reason, a.details, a.ip, a.request_id as "requestId", a.created_at as "createdAt"
    from audit_entries a where ${joinSql(conditions(organizationId, filter, page), ' and ')}
    order by a.id ${page.order === 'asc' ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
  const entries = rows.map((row) => ({ ...row, createdAt: new Date(row.createdAt) }));
  return toPage(entries, page.limit, ({ id }) => [id]);
}

const COLUMNS = { id: sql`a.id`, createdAt: sql`a.created_at` };

function conditions(
  organizationId: string,
  filter: AuditFilter,
  { after: [after] = [], order }: PageRequest,
): Sql[] {
  const all: Sql[] = [sql`a.org_id = ${organizationId}`];
  if (filter.action !== undefined) all.push(sql`a.action = ${filter.action}`);
  if (filter.actorId !== undefined) all.push(sql`a.actor_id = ${filter.actorId}`);
  if (filter.resourceType !== undefined) all.push(sql`a.resource_type = ${filter.resourceType}`);
  if (filter.resourceId !== undefined) all.push(sql`a.resource_id = ${filter.resourceId}`);
  all.push(...createdWithin('auditEntry', COLUMNS, { from: filter.after, before: filter.before }));
  if (after !== undefined) all.push(order === 'asc' ? sql`a.id > ${after}` : sql`a.id < ${after}`);
  return all;
}
