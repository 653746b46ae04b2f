import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { type BulkJob, BulkJobEntity } from './bulk-job.entity.ts';
import { closeJob } from './bulk-job-runner.ts';
import { buildBulkJobStart } from './bulk-job-start.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { endpointsInScope, findEndpoint, requireEnabled } from './find-endpoint.ts';

export interface ReplayRequest {
  /** Events recorded at or after this time. */
  since: Date;
  /** Events recorded before this time; by default now. */
  until?: Date | undefined;
  /** By default the types the endpoint subscribes to. */
  eventTypes?: EventType[] | undefined;
  /** Only deliveries that are exhausted, blocked or canceled, or wait for their next attempt. */
  onlyFailed?: boolean | undefined;
}

export interface BulkJobService {
  /**
   * Redelivers the events of a time range with their original ids: those that match the endpoint's current subscription,
   * even if the endpoint did not exist at that time. Deliveries that wait for their next attempt become due; those in flight or held stay as they are.
   *
   * @throws AppError `not_found`, `validation_error`; `conflict` if the endpoint is disabled or another job is running.
   */
  replay(scope: Scope, endpointId: string, request: ReplayRequest): Promise<BulkJob>;
  /**
   * Cancels all pending and held deliveries of the endpoint, and a running replay.
   *
   * @throws AppError `not_found`.
   */
  cancelPending(scope: Scope, endpointId: string): Promise<BulkJob>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, jobId: string): Promise<BulkJob>;
}

export function createBulkJobService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Outbox;
}): BulkJobService {
  return {
    replay: (scope, endpointId, { since, until = new Date(), eventTypes, onlyFailed = false }) =>
      database.transaction(scope, async (transaction) => {
        if (since >= until) throw emptyRange();
        const { em } = transaction;
        const endpoint = await findEndpoint(em, scope, endpointId, LockMode.PESSIMISTIC_WRITE);
        requireEnabled(endpoint);
        const running = await em.findOne(BulkJobEntity, { endpointId, status: 'running' });
        if (running) throw alreadyRunning(running);
        return createJob(transaction, outbox, endpoint, scope, {
          kind: 'replay',
          since,
          until,
          eventTypes: eventTypes ?? null,
          onlyFailed,
        });
      }),

    cancelPending: (scope, endpointId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const endpoint = await findEndpoint(em, scope, endpointId, LockMode.PESSIMISTIC_WRITE);
        const running = await em.findOne(
          BulkJobEntity,
          { endpointId, status: 'running' },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (running?.kind === 'cancel') return running;
        if (running) {
          closeJob(running, 'stopped', 'The pending deliveries of the endpoint were canceled.');
          await em.flush();
        }
        const until = new Date();
        return createJob(transaction, outbox, endpoint, scope, {
          kind: 'cancel',
          since: null,
          until,
          eventTypes: null,
          onlyFailed: false,
        });
      }),

    get: (scope, jobId) =>
      database.read(scope, async (reader) => {
        const { organizationId } = scope;
        const job = await findRow(reader, BulkJobEntity, { where: { id: jobId, organizationId } });
        const endpoint =
          job &&
          (await findRow(reader, WebhookEndpointEntity, {
            where: [{ id: job.endpointId }, endpointsInScope(scope)],
          }));
        if (!endpoint) throw notFound('webhook job', jobId);
        return job;
      }),
  };
}

type JobSpec = Pick<BulkJob, 'kind' | 'since' | 'until' | 'eventTypes' | 'onlyFailed'>;

async function createJob(
  transaction: Transaction,
  outbox: Outbox,
  endpoint: WebhookEndpoint,
  scope: Scope,
  plan: JobSpec,
): Promise<BulkJob> {
  const job = transaction.em.create(BulkJobEntity, {
    id: newId('bulkJob'),
    organizationId: endpoint.organizationId,
    environmentId: endpoint.environmentId,
    endpointId: endpoint.id,
    requestedByKind: scope.actor.kind,
    requestedById: scope.actor.id,
    ...plan,
    detail: null,
    position: null,
    expedited: 0,
    skipped: {},
    createdAt: new Date(),
    completedAt: null,
  });
  transaction.em.persist(job);
  outbox.enqueue(transaction, job.organizationId, { start: buildBulkJobStart(job) });
  await recordAudit(transaction.db, scope, {
    action: plan.kind === 'replay' ? 'webhook_endpoint.replayed' : 'webhook_endpoint.deliveries_canceled',
    resourceType: 'webhook_endpoint',
    resourceId: endpoint.id,
    details: { job_id: job.id, since: plan.since, until: plan.until },
  });
  return job;
}

function emptyRange(): AppError {
  return invalid(
    '/body/until',
    'must be later than since',
    'Use a time after since, or omit until to replay up to now.',
  );
}

function alreadyRunning({ id, kind }: BulkJob): AppError {
  return new AppError('conflict', {
    detail: `The job ${id} (${kind}) is still running for this endpoint.`,
    fix: `Wait until GET /api/v1/webhooks/jobs/${id} reports completed, or POST to the endpoint's cancel-pending path to stop it.`,
  });
}
