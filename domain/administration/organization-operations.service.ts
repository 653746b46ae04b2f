import type { Database, Transaction } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import type { Scope } from '../identity/scope.ts';
import type {
  RetentionPolicyDetails,
  RetentionPolicyService,
} from '../retention/retention-policy.service.ts';
import { recordInServiceLog, type StaffAuditEvent } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import type { BulkJob } from '../webhooks/bulk-job.entity.ts';
import type { BulkJobService, ReplayRequest } from '../webhooks/bulk-job.service.ts';
import { type EndpointBacklog, findEndpointBacklogs } from './endpoint-backlog.ts';
import { requireOrganization } from './organization-directory.service.ts';

export type OrganizationOperationsService = ReturnType<typeof createOrganizationOperationsService>;

export interface EndpointTarget {
  organizationId: string;
  endpointId: string;
}

/** Changes by staff through the organization's own use-cases. Staff see neither its mail nor its secrets. */
export function createOrganizationOperationsService({
  database,
  retentionPolicies,
  webhookJobs,
}: {
  database: Database;
  retentionPolicies: Pick<RetentionPolicyService, 'get' | 'postpone'>;
  webhookJobs: Pick<BulkJobService, 'replay' | 'cancelPending'>;
}) {
  const requireExisting = (staff: StaffScope, organizationId: string) =>
    database.staffTransaction(staff, ({ db }) => requireOrganization(db, organizationId));

  /**
   * Makes a change through a use-case of the organization, which records it in the organization's log, and records it in the
   * service's log.
   */
  async function change<T>(
    staff: StaffScope,
    organizationId: string,
    note: string,
    work: (
      scope: Scope,
      transaction: Transaction,
    ) => Promise<{ result: T; event: Omit<StaffAuditEvent, 'reason'> }>,
  ): Promise<T> {
    await requireExisting(staff, organizationId);
    const scope = scopeOfStaff(staff, organizationId, note);
    return database.transaction(scope, async (transaction) => {
      const { result, event } = await work({ ...scope, transaction }, transaction);
      await recordInServiceLog(transaction.db, staff, { ...event, reason: note }, organizationId);
      return result;
    });
  }

  const changeEndpoint = (
    staff: StaffScope,
    { organizationId, endpointId }: EndpointTarget,
    { action, note }: { action: AuditAction; note: string },
    work: (scope: Scope) => Promise<BulkJob>,
  ) =>
    change(staff, organizationId, note, async (scope, transaction) => {
      const environmentId = await findEnvironment(transaction, { organizationId, endpointId });
      const result = await work({ ...scope, environmentId });
      const { id, since, until } = result;
      const details = { job_id: id, since, until };
      return { result, event: { action, resourceType: 'webhook_endpoint', resourceId: endpointId, details } };
    });

  return {
    /** @throws AppError `not_found`. */
    async getRetention(staff: StaffScope, organizationId: string): Promise<RetentionPolicyDetails> {
      await requireExisting(staff, organizationId);
      return retentionPolicies.get(scopeOfStaff(staff, organizationId, ''), organizationId);
    },

    /** @throws AppError `not_found`; `conflict` if there is nothing to postpone. */
    postponeRetention: (
      staff: StaffScope,
      organizationId: string,
      { days, note }: { days: number; note: string },
    ): Promise<RetentionPolicyDetails> =>
      change(staff, organizationId, note, async (scope) => ({
        result: await retentionPolicies.postpone(scope, organizationId, days),
        event: {
          action: 'retention_policy.postponed',
          resourceType: 'organization',
          resourceId: organizationId,
          details: { days },
        },
      })),

    /** Lists endpoints of all environments, failing and disabled ones first; at most 100. @throws AppError `not_found`. */
    async listEndpoints(staff: StaffScope, organizationId: string): Promise<EndpointBacklog[]> {
      await requireExisting(staff, organizationId);
      const scope = scopeOfStaff(staff, organizationId, '');
      return database.read(scope, ({ db }) => findEndpointBacklogs(db, organizationId));
    },

    /**
     * Delivers the events of a time range to the endpoint again.
     *
     * @throws AppError `not_found`, `validation_error`; `conflict` if the endpoint is disabled or another job is running.
     */
    replayEndpoint: (
      staff: StaffScope,
      target: EndpointTarget,
      { note, ...request }: ReplayRequest & { note: string },
    ): Promise<BulkJob> =>
      changeEndpoint(staff, target, { action: 'webhook_endpoint.replayed', note }, (scope) =>
        webhookJobs.replay(scope, target.endpointId, request),
      ),

    /** Cancels all pending and held deliveries of the endpoint. @throws AppError `not_found`. */
    dropBacklog: (staff: StaffScope, target: EndpointTarget, { note }: { note: string }): Promise<BulkJob> =>
      changeEndpoint(staff, target, { action: 'webhook_endpoint.deliveries_canceled', note }, (scope) =>
        webhookJobs.cancelPending(scope, target.endpointId),
      ),
  };
}

/** Covers the whole organization, for one change. The environment is that of the changed resource. */
const scopeOfStaff = (staff: StaffScope, organizationId: string, reason: string): Scope => ({
  organizationId,
  environmentId: '',
  environmentBound: false,
  permissions: new Set(),
  actor: { kind: 'staff', id: staff.staffId },
  administration: { sessionId: staff.person.sessionId, reason },
  ip: staff.ip,
  requestId: staff.requestId,
});

/** @throws AppError `not_found`, also for a deleted endpoint. */
async function findEnvironment(
  { db }: Transaction,
  { organizationId, endpointId }: EndpointTarget,
): Promise<string> {
  const endpoint = await db
    .selectFrom('webhook_endpoints')
    .select('env_id as environmentId')
    .where('id', '=', endpointId)
    .where('org_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow(() => notFound('webhook endpoint', endpointId));
  return endpoint.environmentId;
}
