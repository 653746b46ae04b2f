import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { toDatabaseError } from '../../platform/database/database-errors.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRows, type Row } from '../../platform/database/find-rows.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import {
  type Suspension,
  SuspensionEntity,
  type SuspensionReason,
  type SuspensionTargetType,
} from '../suspensions/suspension.entity.ts';
import type { SuspensionService } from '../suspensions/suspension.service.ts';
import type { NamedTarget, SuspensionTarget } from '../suspensions/suspension-target.ts';
import { describeChange } from '../suspensions/system-suspension.service.ts';
import { requireOrganization } from './require-organization.ts';

export type SuspensionAction = 'suspend' | 'reinstate';

export interface StaffSuspensionRequest {
  reason: SuspensionReason;
  /** Recorded in the logs of the service and of the organization, which its members read. */
  note: string;
}

/** What was suspended or reinstated, as it is now. */
export interface SuspendableThing extends NamedTarget {
  status: 'active' | 'suspended';
  openSuspensions: Row<Suspension>[];
}

export interface BulkItem {
  type: SuspensionTargetType;
  id: string;
}

/** `error`: why nothing changed for the item. */
export type BulkResult = BulkItem & ({ status: 'done' } | { status: 'failed'; error: AppError });

export interface SuspensionAdministrationService {
  /** @throws AppError `not_found`; `conflict` if it is, or is not, suspended for the reason. */
  change(
    staff: StaffScope,
    action: SuspensionAction,
    target: SuspensionTarget,
    request: StaffSuspensionRequest,
  ): Promise<SuspendableThing>;
  /** Changes each item in a transaction of its own; one that fails does not affect the others. */
  changeMany(
    staff: StaffScope,
    action: SuspensionAction,
    items: readonly BulkItem[],
    request: StaffSuspensionRequest,
  ): Promise<BulkResult[]>;
  /** @throws AppError `not_found`. */
  list(
    staff: StaffScope,
    organizationId: string,
    filter: { isOpen?: boolean | undefined },
    page: PageRequest,
  ): Promise<Page<Row<Suspension>>>;
}

export function createSuspensionAdministrationService({
  database,
  suspensions,
}: {
  database: Database;
  suspensions: SuspensionService;
}): SuspensionAdministrationService {
  const change: SuspensionAdministrationService['change'] = (staff, action, target, { reason, note }) =>
    database.staffTransaction(staff, async (transaction) => {
      const { em } = transaction;
      const actor = { kind: 'staff' as const, id: staff.staffId };
      const changed = await suspensions[action](transaction, target, { reason, note, actor });
      await recordStaffAudit(em, staff, {
        ...describeChange(changed, note),
        organizationIds: [target.organizationId],
      });
      const openSuspensions = await findRows(em, SuspensionEntity, {
        where: { targetId: target.id, liftedAt: null },
        orderBy: { id: 'desc' },
      });
      return { ...changed.target, status: changed.status, openSuspensions };
    });

  return {
    change,

    async changeMany(staff, action, items, request) {
      const results: BulkResult[] = [];
      for (const item of items) {
        try {
          const organizationId = await database.staffTransaction(staff, ({ em }) =>
            findOrganizationId(em, item),
          );
          await change(staff, action, { ...item, organizationId }, request);
          results.push({ ...item, status: 'done' });
        } catch (thrown) {
          const error = thrown instanceof AppError ? thrown : toDatabaseError(thrown);
          if (!error) throw thrown;
          results.push({ ...item, status: 'failed', error });
        }
      }
      return results;
    },

    list: (staff, organizationId, { isOpen }, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        await requireOrganization(em, organizationId);
        const state = isOpen === undefined ? {} : { liftedAt: isOpen ? null : { $ne: null } };
        return findPage(em, SuspensionEntity, { where: { organizationId, ...state }, page });
      }),
  };
}

const ORGANIZATION_OF: Record<SuspensionTargetType, (id: string) => Sql> = {
  organization: (id) => sql`select id as "organizationId" from organizations where id = ${id}`,
  environment: (id) => sql`select org_id as "organizationId" from environments where id = ${id}`,
  inbox: (id) => sql`select org_id as "organizationId" from inboxes where id = ${id}`,
};

/** @throws AppError `not_found`. */
async function findOrganizationId(em: EntityManager, { type, id }: BulkItem): Promise<string> {
  const [row] = await em.execute<{ organizationId: string }[]>(ORGANIZATION_OF[type](id));
  if (!row) throw notFound(type, id);
  return row.organizationId;
}
