import type { SelectQueryBuilder } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { toDatabaseError } from '../../platform/database/database-errors.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
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
import {
  describeChange,
  type NamedTarget,
  type SuspensionService,
  type SuspensionTarget,
} from '../suspensions/suspension.service.ts';
import { requireOrganization } from './organization-directory.service.ts';

export type SuspensionAction = 'suspend' | 'reinstate';

export interface StaffSuspensionRequest {
  reason: SuspensionReason;
  /** Recorded in the logs of the service and of the organization, which its members read. */
  note: string;
}

/** The target of the change, in its current state. */
export interface SuspensionTargetState extends NamedTarget {
  status: 'active' | 'suspended';
  openSuspensions: Suspension[];
}

export interface BulkItem {
  type: SuspensionTargetType;
  id: string;
}

/** `error`: why the item was not changed. */
export type BulkResult = BulkItem & ({ status: 'done' } | { status: 'failed'; error: AppError });

export type SuspensionAdministrationService = ReturnType<typeof createSuspensionAdministrationService>;

export function createSuspensionAdministrationService({
  database,
  suspensions,
}: {
  database: Database;
  suspensions: SuspensionService;
}) {
  /**
   * @throws AppError `not_found`; `conflict` if the target is already suspended for the reason, or is not suspended for it.
   */
  const change = (
    staff: StaffScope,
    action: SuspensionAction,
    target: SuspensionTarget,
    { reason, note }: StaffSuspensionRequest,
  ): Promise<SuspensionTargetState> =>
    database.staffTransaction(staff, async (transaction) => {
      const { db } = transaction;
      const actor = { kind: 'staff' as const, id: staff.staffId };
      const changed = await suspensions[action](transaction, target, { reason, note, actor });
      await recordStaffAudit(db, staff, {
        ...describeChange(changed, note),
        organizationIds: [target.organizationId],
      });
      const openSuspensions = await findOpenSuspensions(db, target.id);
      return { ...changed.target, status: changed.status, openSuspensions };
    });

  return {
    change,

    /** Changes each item in its own transaction, so that a failure does not affect the others. */
    async changeMany(
      staff: StaffScope,
      action: SuspensionAction,
      items: readonly BulkItem[],
      request: StaffSuspensionRequest,
    ): Promise<BulkResult[]> {
      const results: BulkResult[] = [];
      for (const item of items) {
        try {
          const organizationId = await database.staffTransaction(staff, ({ db }) =>
            findOrganizationId(db, item),
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

    /** @throws AppError `not_found`. */
    list: (
      staff: StaffScope,
      organizationId: string,
      { isOpen }: { isOpen?: boolean | undefined },
      page: PageRequest,
    ): Promise<Page<Suspension>> =>
      database.staffTransaction(staff, async ({ db }) => {
        await requireOrganization(db, organizationId);
        const suspensions = db
          .selectFrom('suspensions')
          .select(columnsOf(SuspensionEntity))
          .where('org_id', '=', organizationId)
          .$if(isOpen !== undefined, (each) => each.where('lifted_at', isOpen ? 'is' : 'is not', null));
        return findPage(suspensions, 'suspensions.id', page);
      }),
  };
}

function findOpenSuspensions(db: Db, targetId: string): Promise<Suspension[]> {
  return db
    .selectFrom('suspensions')
    .select(columnsOf(SuspensionEntity))
    .where('target_id', '=', targetId)
    .where('lifted_at', 'is', null)
    .orderBy('id', 'desc')
    .execute();
}

const SELECT_ORGANIZATION_ID: Record<
  SuspensionTargetType,
  (db: Db, id: string) => SelectQueryBuilder<Tables, never, { organizationId: string }>
> = {
  organization: (db, id) =>
    db.selectFrom('organizations').select('id as organizationId').where('id', '=', id),
  environment: (db, id) =>
    db.selectFrom('environments').select('org_id as organizationId').where('id', '=', id),
  inbox: (db, id) => db.selectFrom('inboxes').select('org_id as organizationId').where('id', '=', id),
};

/** @throws AppError `not_found`. */
async function findOrganizationId(db: Db, { type, id }: BulkItem): Promise<string> {
  const found = await SELECT_ORGANIZATION_ID[type](db, id).executeTakeFirstOrThrow(() => notFound(type, id));
  return found.organizationId;
}
