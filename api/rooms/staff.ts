import { applyTier } from '../../domain/administration/apply-tier.ts';
import { createAdministration } from '../../domain/administration/create-administration.ts';
import { createAnnouncementService } from '../../domain/announcements/announcement.service.ts';
import { createBillingServices, isPaidTier } from '../../domain/billing/billing-services.ts';
import { createImpersonation } from '../../domain/impersonation/create-impersonation.ts';
import { createMonitoring } from '../../domain/monitoring/create-monitoring.ts';
import { preparePeople } from '../../domain/people/create-people.ts';
import type { SharedServices } from '../../domain/shared-services.ts';
import { recordStaffAudit } from '../../domain/staff/record-staff-audit.ts';
import { createStaffAuditLogService } from '../../domain/staff/staff-audit-log.service.ts';
import { createOpenSuspensionList } from '../../domain/suspensions/suspension.service.ts';
import { createToggleService } from '../../domain/toggles/toggle.service.ts';
import { createUpgradeRequests } from '../../domain/upgrade-requests/create-upgrade-requests.ts';
import { createWorkflowRuns } from '../../domain/workflow-runs/create-workflow-runs.ts';
import type { createMailRooms } from './mail.ts';
import type { ServiceOptions } from './service-options.ts';

/** What staff see and do. */
export function createStaffRooms(
  options: ServiceOptions,
  shared: SharedServices,
  { retentionPolicies, webhookJobs }: ReturnType<typeof createMailRooms>,
) {
  const { config, database, outbox, temporalRuns, schedules, logger } = options;
  const { workerDatabase = database } = options;
  const { notifications, suspensions } = shared;
  const billing = createBillingServices({ ...options, workerDatabase, notifications, suspensions });
  return {
    ...billing,
    staffAuditLog: createStaffAuditLogService({ database }),
    toggles: createToggleService({ database, outbox }),
    announcements: createAnnouncementService({ database, outbox }),
    openSuspensions: createOpenSuspensionList({ database }),
    ...createWorkflowRuns({ database, outbox, runs: temporalRuns }),
    ...createImpersonation({ database, notifications }),
    ...createMonitoring({ database, outbox, schedules, logger }),
    ...createAdministration({
      database,
      outbox,
      notifications,
      suspensions,
      people: preparePeople({ ...shared, config, database }),
      retentionPolicies,
      webhookJobs,
    }),
    ...createUpgradeRequests({
      database,
      notifications,
      findPaymentPage: (tenant, tier) =>
        isPaidTier(config, tier) ? billing.billing?.findPaymentPage(tenant, tier) : undefined,
      async onApprove(transaction, staff, { organizationId, tier, decisionNote }) {
        // Then the subscription grants the tier.
        if (isPaidTier(config, tier)) return;
        await applyTier(transaction, outbox, {
          organizationId,
          tier,
          actor: staff.staffId,
          at: new Date(),
          record: (event) =>
            recordStaffAudit(transaction.db, staff, {
              ...event,
              organizationIds: [organizationId],
              reason: decisionNote ?? '',
            }),
        });
      },
    }),
  };
}
