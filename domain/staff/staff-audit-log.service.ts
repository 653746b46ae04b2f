import { columnsOf } from '../../platform/database/columns-of.ts';
import { createdIn } from '../../platform/database/creation-range.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { type StaffAuditEntry, StaffAuditEntryEntity } from './staff.entity.ts';
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

export type StaffAuditLogService = ReturnType<typeof createStaffAuditLogService>;

export function createStaffAuditLogService({ database }: { database: Database }) {
  return {
    /** Lists the service's log of all staff. */
    list: (staff: StaffScope, filter: StaffLogFilter, page: PageRequest): Promise<Page<StaffLogEntry>> =>
      database.staffTransaction(staff, ({ db }) => {
        const { after: from, before } = filter;
        const query = db
          .selectFrom('staff_audit_entries')
          .select(columnsOf(StaffAuditEntryEntity))
          .select(({ selectFrom }) => [
            selectFrom('users')
              .select(({ fn }) => fn.coalesce('users.name', 'users.email').as('name'))
              .whereRef('users.id', '=', 'staff_audit_entries.staff_id')
              .as('staffName'),
            selectFrom('organizations')
              .select('organizations.name')
              .whereRef('organizations.id', '=', 'staff_audit_entries.organization_id')
              .as('organizationName'),
          ])
          .where(({ and }) =>
            and({
              action: filter.action,
              staff_id: filter.staffId,
              resource_type: filter.resourceType,
              resource_id: filter.resourceId,
              organization_id: filter.organizationId,
            }),
          )
          .where(({ and }) => and(createdIn('staffAuditEntry', 'staff_audit_entries', { from, before })));
        return findPage(query, 'staff_audit_entries.id', page);
      }),
  };
}
