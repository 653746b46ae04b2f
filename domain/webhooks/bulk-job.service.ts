import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { type BulkJob, BulkJobEntity } from './bulk-job.entity.ts';
import { buildBulkJobStart, closeJob } from './bulk-job-runner.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { endpointsInScope, lockEndpoint, requireEnabled } from './find-endpoint.ts';

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

export type BulkJobService = ReturnType<typeof createBulkJobService>;

export function createBulkJobService({ database, outbox }: { database: Database; outbox: Outbox }) {
  return {
    /**
     * Redelivers the events of a time range with their original ids: those that match the endpoint's current
     * subscription, even if the endpoint did not exist at that time. Deliveries that wait for their next attempt become
     * due; deliveries that are in flight or held do not change.
     *
     * @throws AppError `not_found`, `validation_error`; `conflict` if the endpoint is disabled or another job is
     * running.
     */
    replay: (
      scope: Scope,
      endpointId: string,
      { since, until = new Date(), eventTypes, onlyFailed = false }: ReplayRequest,
    ): Promise<BulkJob> =>
      database.transaction(scope, async (transaction) => {
        if (since >= until) throw emptyRange();
        const { db } = transaction;
        const endpoint = await lockEndpoint(db, scope, endpointId);
        requireEnabled(endpoint);
        const running = await findRunning(db, endpointId).executeTakeFirst();
        if (running) throw alreadyRunning(running);
        return createJob(transaction, outbox, endpoint, scope, {
          kind: 'replay',
          since,
          until,
          eventTypes: eventTypes ?? null,
          onlyFailed,
        });
      }),

    /**
     * Cancels all pending and held deliveries of the endpoint, and a running replay.
     *
     * @throws AppError `not_found`.
     */
    cancelPending: (scope: Scope, endpointId: string): Promise<BulkJob> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const endpoint = await lockEndpoint(db, scope, endpointId);
        const running = await findRunning(db, endpointId).forUpdate().executeTakeFirst();
        if (running?.kind === 'cancel') return running;
        if (running)
          await closeJob(db, running.id, {
            status: 'stopped',
            detail: 'The pending deliveries of the endpoint were canceled.',
          });
        return createJob(transaction, outbox, endpoint, scope, {
          kind: 'cancel',
          since: null,
          until: new Date(),
          eventTypes: null,
          onlyFailed: false,
        });
      }),

    /** @throws AppError `not_found`. */
    get: (scope: Scope, jobId: string): Promise<BulkJob> =>
      database.read(scope, async ({ db }) => {
        const job = await db
          .selectFrom('webhook_bulk_jobs')
          .select(columnsOf(BulkJobEntity))
          .where('id', '=', jobId)
          .where('org_id', '=', scope.organizationId)
          .executeTakeFirst();
        const endpoint =
          job && (await endpointsInScope(db, scope).where('id', '=', job.endpointId).executeTakeFirst());
        if (!endpoint) throw notFound('webhook job', jobId);
        return job;
      }),
  };
}

/** Finds the running job; the unique index allows only one. */
const findRunning = (db: Db, endpointId: string) =>
  db
    .selectFrom('webhook_bulk_jobs')
    .select(columnsOf(BulkJobEntity))
    .where('endpoint_id', '=', endpointId)
    .where('status', '=', 'running');

type JobSpec = Pick<BulkJob, 'kind' | 'since' | 'until' | 'eventTypes' | 'onlyFailed'>;

async function createJob(
  transaction: Transaction,
  outbox: Outbox,
  endpoint: WebhookEndpoint,
  scope: Scope,
  { kind, since, until, eventTypes, onlyFailed }: JobSpec,
): Promise<BulkJob> {
  const { db } = transaction;
  const job = await db
    .insertInto('webhook_bulk_jobs')
    .values({
      id: newId('bulkJob'),
      org_id: endpoint.organizationId,
      env_id: endpoint.environmentId,
      endpoint_id: endpoint.id,
      kind,
      requested_by_kind: scope.actor.kind,
      requested_by_id: scope.actor.id,
      since,
      until,
      event_types: eventTypes,
      only_failed: onlyFailed,
      created_at: new Date(),
    })
    .returning(columnsOf(BulkJobEntity))
    .executeTakeFirstOrThrow(() => new Error('The job was not stored'));
  outbox.enqueue(transaction, job.organizationId, { start: buildBulkJobStart(job) });
  await recordAudit(db, scope, {
    action: kind === 'replay' ? 'webhook_endpoint.replayed' : 'webhook_endpoint.deliveries_canceled',
    resourceType: 'webhook_endpoint',
    resourceId: endpoint.id,
    details: { job_id: job.id, since, until },
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
    detail: `A job of the endpoint is still running (${kind}).`,
    fix: `Wait until it is completed (GET /api/v1/webhooks/jobs/${id}), or stop it: POST /api/v1/webhooks/endpoints/{id}/cancel-pending.`,
  });
}
