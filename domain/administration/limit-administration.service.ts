import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Tier } from '../organizations/tier.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type NewOverride, removeOverride, setOverride } from '../usage/change-limits.ts';
import type { LimitedResource } from '../usage/counters.ts';
import { type LimitOverride, LimitOverrideEntity } from '../usage/limit.entity.ts';
import { applyTier, startLimitRelease } from './apply-tier.ts';
import { requireOrganization } from './organization-directory.service.ts';

export type LimitAdministrationService = ReturnType<typeof createLimitAdministrationService>;

export function createLimitAdministrationService({
  database,
  outbox,
  now = () => new Date(),
}: {
  database: Database;
  outbox: Outbox;
  now?: () => Date;
}) {
  const by = (staff: StaffScope, organizationId: string) => ({
    organizationId,
    actor: staff.staffId,
    at: now(),
  });
  const auditOf = (organizationId: string) => ({
    resourceType: 'organization',
    resourceId: organizationId,
    organizationIds: [organizationId],
  });

  return {
    /**
     * Takes effect at once, and releases work that the old limits held. @throws AppError `not_found`, as do the methods
     * below.
     */
    setTier: (
      staff: StaffScope,
      organizationId: string,
      { tier, note }: { tier: Tier; note: string },
    ): Promise<void> =>
      database.staffTransaction(staff, async (transaction) => {
        await applyTier(transaction, outbox, {
          ...by(staff, organizationId),
          tier,
          record: (event) =>
            recordStaffAudit(transaction.db, staff, {
              ...event,
              organizationIds: [organizationId],
              reason: note,
            }),
        });
      }),

    /** Replaces an existing override of the counter. @throws AppError `validation_error` for an expiry in the past. */
    setOverride: (staff: StaffScope, organizationId: string, override: NewOverride): Promise<LimitOverride> =>
      database.staffTransaction(staff, async (transaction) => {
        const { expiresAt, resource, limit, reason } = override;
        if (expiresAt && expiresAt.getTime() <= now().getTime())
          throw invalid('/body/expires_at', 'must be in the future', 'Choose a later time, or leave it out.');
        const { db } = transaction;
        const set = await setOverride(db, { ...by(staff, organizationId), ...override });
        await recordStaffAudit(db, staff, {
          ...auditOf(organizationId),
          action: 'limit_override.set',
          reason,
          details: {
            counter: resource,
            limit,
            kind: set.override.kind,
            expires_at: expiresAt?.toISOString() ?? null,
          },
        });
        startLimitRelease(transaction, outbox, { organizationId, eventId: set.eventId });
        return set.override;
      }),

    /** @throws AppError `not_found` also without an override. */
    removeOverride: (
      staff: StaffScope,
      organizationId: string,
      { resource, note }: { resource: LimitedResource; note: string },
    ): Promise<void> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const eventId = await removeOverride(db, { ...by(staff, organizationId), resource });
        if (eventId === null) throw notFound('limit override', resource);
        await recordStaffAudit(db, staff, {
          ...auditOf(organizationId),
          action: 'limit_override.removed',
          reason: note,
          details: { counter: resource },
        });
        startLimitRelease(transaction, outbox, { organizationId, eventId });
      }),

    /** Includes expired overrides, which have no effect. At most one for each counter. */
    listOverrides: (staff: StaffScope, organizationId: string): Promise<LimitOverride[]> =>
      database.staffTransaction(staff, async ({ db }) => {
        await requireOrganization(db, organizationId);
        return db
          .selectFrom('limit_overrides')
          .select(columnsOf(LimitOverrideEntity))
          .where('org_id', '=', organizationId)
          .orderBy('resource')
          .execute();
      }),
  };
}
