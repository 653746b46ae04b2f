import { sql } from '@mikro-orm/core';
import { createdWithin } from '../../platform/database/created-within.ts';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { StaffAuditEntry } from './staff-audit-entry.entity.ts';
import type { StaffScope } from './staff-scope.ts';

export interface StaffLogEntry extends StaffAuditEntry {
  /** Current name or address of the staff member; null if the account no longer exists. */
  staffName: string | null;
  /** Current name of the organization; null if there is none, or it was purged. */
  organizationName: string | null;
}

export interface StaffLogFilter {
  action?: string;
  staffId?: string;
  resourceType?: string;
  resourceId?: string;
  organizationId?: string;
  /** Recorded at or after this time. */
  after?: Date;
  /** Recorded before this time. */
  before?: Date;
}

export interface StaffAuditLogService {
  /** The log of the service, of all staff. */
  list(staff: StaffScope, filter: StaffLogFilter, page: PageRequest): Promise<Page<StaffLogEntry>>;
}

export function createStaffAuditLogService({ database }: { database: Database }): StaffAuditLogService {
  return {
    list: (staff, filter, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        const rows = await em.execute<SerializedRow<StaffLogEntry>[]>(sql`
          select a.id, a.staff_id as "staffId", a.session_id as "sessionId", a.action, a.resource_type as "resourceType",
            a.resource_id as "resourceId", a.organization_id as "organizationId", a.reason, a.details, a.ip,
            a.request_id as "requestId", a.created_at as "createdAt",
            (select coalesce(u.name, u.email) from users u where u.id = a.staff_id) as "staffName",
            (select o.name from organizations o where o.id = a.organization_id) as "organizationName"
          from staff_audit_entries a where ${joinSql(conditions(filter, page), ' and ')}
          order by a.id ${page.order === 'asc' ? sql`asc` : sql`desc`} limit ${page.limit + 1}`);
        const entries = rows.map((row) => ({ ...row, createdAt: new Date(row.createdAt) }));
        return toPage(entries, page.limit, ({ id }) => [id]);
      }),
  };
}

const COLUMNS = { id: sql`a.id`, createdAt: sql`a.created_at` };

function conditions(filter: StaffLogFilter, { after: [after] = [], order }: PageRequest): Sql[] {
  const all: Sql[] = [sql`true`];
  if (filter.action !== undefined) all.push(sql`a.action = ${filter.action}`);
  if (filter.staffId !== undefined) all.push(sql`a.staff_id = ${filter.staffId}`);
  if (filter.resourceType !== undefined) all.push(sql`a.resource_type = ${filter.resourceType}`);
  if (filter.resourceId !== undefined) all.push(sql`a.resource_id = ${filter.resourceId}`);
  if (filter.organizationId !== undefined) all.push(sql`a.organization_id = ${filter.organizationId}`);
  all.push(...createdWithin('staffAuditEntry', COLUMNS, { from: filter.after, before: filter.before }));
  if (after !== undefined) all.push(order === 'asc' ? sql`a.id > ${after}` : sql`a.id < ${after}`);
  return all;
}
