import { sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import type {
  RetentionPolicyDetails,
  RetentionPolicyService,
} from '../retention/retention-policy.service.ts';
import { recordInServiceLog, type StaffAuditEvent } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import type { BulkJob } from '../webhooks/bulk-job.entity.ts';
import type { BulkJobService, ReplayRequest } from '../webhooks/bulk-job.service.ts';
import { type EndpointBacklog, queryEndpointBacklogs } from './endpoint-backlog.ts';
import { requireOrganization } from './require-organization.ts';

/** What staff do for one organization with its own use-cases: they see neither its mail nor its secrets. */
export interface OrganizationOperationsService {
  /** @throws AppError `not_found`. */
  getRetention(staff: StaffScope, organizationId: string): Promise<RetentionPolicyDetails>;
  /** @throws AppError `not_found`; `conflict` if there is nothing to postpone. */
  postponeRetention(
    staff: StaffScope,
    organizationId: string,
    change: { days: number; note: string },
  ): Promise<RetentionPolicyDetails>;
  /** The endpoints of all environments, those that fail or are disabled first; at most 100. @throws AppError `not_found`. */
  listEndpoints(staff: StaffScope, organizationId: string): Promise<EndpointBacklog[]>;
  /**
   * Delivers the events of a time range to the endpoint again.
   *
   * @throws AppError `not_found`, `validation_error`; `conflict` if the endpoint is disabled or another job is running.
   */
  replayEndpoint(
    staff: StaffScope,
    target: EndpointTarget,
    request: ReplayRequest & { note: string },
  ): Promise<BulkJob>;
  /** Cancels everything that waits for the endpoint. @throws AppError `not_found`. */
  dropBacklog(staff: StaffScope, target: EndpointTarget, request: { note: string }): Promise<BulkJob>;
}

export interface EndpointTarget {
  organizationId: string;
  endpointId: string;
}

export function createOrganizationOperationsService({
  database,
  retentionPolicies,
  webhookJobs,
}: {
  database: Database;
  retentionPolicies: Pick<RetentionPolicyService, 'get' | 'postpone'>;
  webhookJobs: Pick<BulkJobService, 'replay' | 'cancelPending'>;
}): OrganizationOperationsService {
  const requireExisting = (staff: StaffScope, organizationId: string) =>
    database.staffTransaction(staff, ({ em }) => requireOrganization(em, organizationId));

  /** Makes a change with a use-case of the organization, which records it there, and records it for the service. */
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
      await recordInServiceLog(transaction.em, staff, { ...event, reason: note }, organizationId);
      return result;
    });
  }

  const changeEndpoint = (
    staff: StaffScope,
    { organizationId, endpointId }: EndpointTarget,
    { action, note }: { action: string; note: string },
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
    async getRetention(staff, organizationId) {
      await requireExisting(staff, organizationId);
      return retentionPolicies.get(scopeOfStaff(staff, organizationId, ''), organizationId);
    },

    postponeRetention: (staff, organizationId, { days, note }) =>
      change(staff, organizationId, note, async (scope) => ({
        result: await retentionPolicies.postpone(scope, organizationId, days),
        event: {
          action: 'retention_policy.postponed',
          resourceType: 'organization',
          resourceId: organizationId,
          details: { days },
        },
      })),

    async listEndpoints(staff, organizationId) {
      await requireExisting(staff, organizationId);
      const scope = scopeOfStaff(staff, organizationId, '');
      return database.read(scope, (reader) => queryEndpointBacklogs(reader, organizationId));
    },

    replayEndpoint: (staff, target, { note, ...request }) =>
      changeEndpoint(staff, target, { action: 'webhook_endpoint.replayed', note }, (scope) =>
        webhookJobs.replay(scope, target.endpointId, request),
      ),

    dropBacklog: (staff, target, { note }) =>
      changeEndpoint(staff, target, { action: 'webhook_endpoint.deliveries_canceled', note }, (scope) =>
        webhookJobs.cancelPending(scope, target.endpointId),
      ),
  };
}

/** The whole organization, for one change. The environment is that of the changed resource. */
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
  { em }: Transaction,
  { organizationId, endpointId }: EndpointTarget,
): Promise<string> {
  const [row] = await em.execute<{ environmentId: string }[]>(sql`
    select env_id as "environmentId" from webhook_endpoints
    where id = ${endpointId} and org_id = ${organizationId} and deleted_at is null`);
  if (!row) throw notFound('webhook endpoint', endpointId);
  return row.environmentId;
}
