import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { type BulkJob, BulkJobEntity } from './bulk-job.entity.ts';
import { closeJob } from './bulk-job-runner.ts';
import { buildBulkJobStart } from './bulk-job-start.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { endpointsInScope, findEndpoint, requireEnabled } from './find-endpoint.ts';

export interface ReplayRequest {
  /** Events recorded at or after this time … */
  since: Date;
  /** … and before this one; empty: until now. */
  until?: Date | undefined;
  /** Empty: of the types the endpoint subscribes to. */
  eventTypes?: EventType[] | undefined;
  /** Only what did not arrive (exhausted, blocked, canceled). */
  onlyFailed?: boolean | undefined;
}

export interface BulkJobService {
  /**
   * Delivers events of a time once more, with their own ids: those the endpoint would hear of today, whether or not it
   * existed then. What is on its way already stays as it is.
   *
   * @throws AppError `not_found`, `validation_error`; `conflict` where the endpoint is disabled or another job runs.
   */
  replay(scope: Scope, endpointId: string, wish: ReplayRequest): Promise<BulkJob>;
  /**
   * Gives up what waits for the endpoint now, held deliveries too, and a replay that runs.
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
        return createJob(transaction, outbox, endpoint, {
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
          closeJob(running, 'stopped', 'What waited for the endpoint was canceled.');
          await em.flush();
        }
        const until = new Date();
        return createJob(transaction, outbox, endpoint, {
          kind: 'cancel',
          since: null,
          until,
          eventTypes: null,
          onlyFailed: false,
        });
      }),

    get: (scope, jobId) =>
      database.transaction(scope, async ({ em }) => {
        const job = await em.findOne(BulkJobEntity, { id: jobId, organizationId: scope.organizationId });
        const endpoint =
          job &&
          (await em.findOne(WebhookEndpointEntity, {
            $and: [{ id: job.endpointId }, endpointsInScope(scope)],
          }));
        if (!endpoint) throw notFound('webhook job', jobId);
        return job;
      }),
  };
}

type JobSpec = Pick<BulkJob, 'kind' | 'since' | 'until' | 'eventTypes' | 'onlyFailed'>;

function createJob(
  transaction: Transaction,
  outbox: Outbox,
  endpoint: WebhookEndpoint,
  plan: JobSpec,
): BulkJob {
  const job = transaction.em.create(BulkJobEntity, {
    id: newId('bulkJob'),
    organizationId: endpoint.organizationId,
    environmentId: endpoint.environmentId,
    endpointId: endpoint.id,
    ...plan,
    detail: null,
    position: null,
    createdAt: new Date(),
    completedAt: null,
  });
  transaction.em.persist(job);
  outbox.enqueue(transaction, job.organizationId, { start: buildBulkJobStart(job) });
  return job;
}

function emptyRange(): AppError {
  return invalid(
    '/body/until',
    'is not after since',
    'Give a time after since, or leave until out to replay up to now.',
  );
}

function alreadyRunning({ id, kind }: BulkJob): AppError {
  return new AppError('conflict', {
    detail: `The job ${id} (${kind}) still runs for this endpoint.`,
    fix: `Wait until GET /api/v1/webhooks/jobs/${id} says completed, or POST to the endpoint's cancel-pending path to stop it.`,
  });
}
