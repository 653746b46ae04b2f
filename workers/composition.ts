import { join } from 'node:path';
import type { Logger } from 'pino';
import { createMaintenanceActivities } from '../activities/maintenance.activities.ts';
import { createDkimKeys, type DkimKeys, loadSharedDkimKey } from '../domain/domains/dkim-keys.ts';
import { createParserPool, type ParserPool } from '../domain/mime/parser/pool.ts';
import { purgeProcesses } from '../domain/monitoring/announce-process.ts';
import { recordSweep } from '../domain/monitoring/sweeps.ts';
import { createSubmissionService, type SubmissionService } from '../domain/outbound/submission.service.ts';
import { createRefusalRecorder, type RefusalRecorder } from '../domain/refusals/refusal-recorder.ts';
import { createSharedServices } from '../domain/shared-services.ts';
import { createFairShare, thirdOf } from '../platform/concurrency/fair-share.ts';
import type { Config } from '../platform/config.ts';
import { createDatabase } from '../platform/database/database.ts';
import { purgeIdempotencyKeys } from '../platform/idempotency/purge-keys.ts';
import { createProgressMarker } from '../platform/installation/progress-marker.ts';
import { findLastRestore } from '../platform/installation/restore-rows.ts';
import type { MailTransport } from '../platform/mail-transport/mail-transport.ts';
import { createSesTransport, SES_OVERWRITTEN_FIELDS } from '../platform/mail-transport/ses-transport.ts';
import { createSimulatorTransport } from '../platform/mail-transport/simulator-transport.ts';
import { createSmtpTransport } from '../platform/mail-transport/smtp-transport.ts';
import { once } from '../platform/once.ts';
import { createOutbox } from '../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { purgeRateBuckets } from '../platform/rate-limit/purge-buckets.ts';
import { createServiceMetrics } from '../platform/service-metrics.ts';
import { createStorage } from '../platform/storage.ts';
import { createTemporalClient } from '../platform/temporal.ts';
import { createWorkflowRuns } from '../platform/temporal-runs/workflow-runs.ts';
import { traceTransport } from '../platform/tracing/traced-transport.ts';
import { RECONCILE } from '../workflows/maintenance/reconcile.contract.ts';
import { MAINTENANCE_QUEUE, PACED_QUEUES, type TaskQueue } from '../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from './room.ts';
import { announcementsRoom } from './rooms/announcements.ts';
import { attachmentsRoom } from './rooms/attachments.ts';
import { billingRoom } from './rooms/billing.ts';
import { connectionsRoom } from './rooms/connections.ts';
import { deletionsRoom } from './rooms/deletions.ts';
import { deliverabilityRoom } from './rooms/deliverability.ts';
import { domainsRoom } from './rooms/domains.ts';
import { draftsRoom } from './rooms/drafts.ts';
import { eventsRoom } from './rooms/events.ts';
import { exportsRoom } from './rooms/exports.ts';
import { impersonationRoom } from './rooms/impersonation.ts';
import { inboundRoom } from './rooms/inbound.ts';
import { inboxPurgesRoom } from './rooms/inbox-purges.ts';
import { messagesRoom } from './rooms/messages.ts';
import { metricsRoom } from './rooms/metrics.ts';
import { notificationsRoom } from './rooms/notifications.ts';
import { oauthRoom } from './rooms/oauth.ts';
import { outboundRoom } from './rooms/outbound.ts';
import { peopleRoom } from './rooms/people.ts';
import { requestsRoom } from './rooms/requests.ts';
import { retentionRoom } from './rooms/retention.ts';
import { ssoRoom } from './rooms/sso.ts';
import { storedObjectsRoom } from './rooms/stored-objects.ts';
import { suspensionsRoom } from './rooms/suspensions.ts';
import { togglesRoom } from './rooms/toggles.ts';
import { usageRoom } from './rooms/usage.ts';
import { usageAlertsRoom } from './rooms/usage-alerts.ts';
import { webhooksRoom } from './rooms/webhooks.ts';
import { workflowRunsRoom } from './rooms/workflow-runs.ts';

/** Every room with background work. */
const ROOMS: readonly Room[] = [
  outboundRoom,
  inboundRoom,
  messagesRoom,
  draftsRoom,
  notificationsRoom,
  webhooksRoom,
  eventsRoom,
  domainsRoom,
  deliverabilityRoom,
  usageRoom,
  usageAlertsRoom,
  requestsRoom,
  metricsRoom,
  inboxPurgesRoom,
  attachmentsRoom,
  storedObjectsRoom,
  retentionRoom,
  deletionsRoom,
  exportsRoom,
  peopleRoom,
  impersonationRoom,
  oauthRoom,
  connectionsRoom,
  ssoRoom,
  togglesRoom,
  workflowRunsRoom,
  announcementsRoom,
  suspensionsRoom,
  billingRoom,
];

export interface Composition extends WorkerDependencies {
  temporal: ReturnType<typeof createTemporalClient>;
  /** Stores refused mail, for listeners. */
  refusals(): RefusalRecorder;
  /** The service for messages submitted over SMTP. */
  submissions(): SubmissionService;
  /** Activities of the task queues that this process polls. */
  activities: Partial<Record<TaskQueue, object>>;
  /** Waits for work in progress, then closes every connection. */
  close(): Promise<void>;
}

/**
 * Receiving must not take the database and the thread from sends, in the same process or in another: with 5, sends took
 * twice as long during a flood, and the flood ended no sooner (`npm run bench -- flood`). Two keep a thread busy.
 */
const MAX_CONCURRENT_RECEIVING = 2;

/** Of the activities of the queue `maintenance`, so that jobs leave most of them to everything else. */
const MAX_CONCURRENT_JOBS = 12;

const maxConcurrentReceiving = ({ DATABASE_POOL_SIZE: poolSize }: Config) =>
  Math.min(MAX_CONCURRENT_RECEIVING, Math.ceil(poolSize / 2));

/** Builds the dependencies of a worker or listener process: only those that its queues and listeners use. */
export async function compose(
  config: Config,
  logger: Logger,
  queues: readonly TaskQueue[],
): Promise<Composition> {
  const database = createDatabase({
    url: config.DATABASE_URL,
    poolSize: config.DATABASE_POOL_SIZE,
  });
  const storage = createStorage(config);
  const temporal = createTemporalClient(config);
  const workflows = createWorkflowGateway(temporal);
  const metrics = createServiceMetrics();
  const outbox = createOutbox({
    database,
    workflows,
    logger,
    metrics,
    pacedQueues: PACED_QUEUES,
  });
  const services = createSharedServices({
    config,
    database,
    workerDatabase: database,
    outbox,
    storage,
    logger,
    metrics,
  });
  const closers: (() => Promise<void>)[] = [];
  const simulator = once(() => createSimulatorTransport({ mailDomain: config.MAIL_DOMAIN }));
  const dependencies: WorkerDependencies = {
    config,
    logger,
    database,
    storage,
    outbox,
    workflowRuns: createWorkflowRuns(temporal, config.TEMPORAL_NAMESPACE),
    services,
    metrics,
    maxConcurrentReceiving: maxConcurrentReceiving(config),
    jobShares: createFairShare({
      name: 'bulk and staff jobs',
      capacity: MAX_CONCURRENT_JOBS,
      reserve: thirdOf(MAX_CONCURRENT_JOBS),
    }),
    simulator,
    mailTransport: once(() => {
      const transport = traceTransport(createMailTransport(config, simulator));
      closers.push(() => transport.close());
      return transport;
    }),
    parserPool: once((): ParserPool => {
      const pool = createParserPool({ entry: PARSER_ENTRY, processes: config.MAIL_PARSER_PROCESSES });
      closers.push(() => pool.close());
      return pool;
    }),
    dkimKeys: once(
      async (): Promise<DkimKeys> =>
        createDkimKeys({
          database,
          secretBox: services.secretBox,
          mailDomain: config.MAIL_DOMAIN,
          shared: await loadSharedDkimKey(config),
          unsigned: config.MAIL_TRANSPORT === 'ses' ? SES_OVERWRITTEN_FIELDS : [],
        }),
    ),
  };
  const activities: Composition['activities'] = {};
  for (const queue of queues) {
    const activitySets = await Promise.all(ROOMS.map((room) => room.activities?.[queue]?.(dependencies)));
    activities[queue] = Object.assign({}, ...activitySets);
  }
  if (queues.includes(MAINTENANCE_QUEUE)) {
    const maintenance = ROOMS.flatMap((room) => room.maintenance?.(dependencies) ?? []);
    Object.assign(
      activities[MAINTENANCE_QUEUE] ?? {},
      createMaintenanceActivities({
        outbox,
        workflows,
        findLastRestore: () => findLastRestore(database),
        sources: maintenance.flatMap(({ overdue = [] }) => overdue),
        sweeps: Object.assign(
          {
            idempotencyKeys: () => purgeIdempotencyKeys(database),
            endedProcesses: () => purgeProcesses(database),
            rateBuckets: () => purgeRateBuckets(database),
            lostCommits: () => createProgressMarker(database, storage).advance(),
          },
          ...maintenance.map(({ sweeps }) => sweeps),
        ),
        recordSweep: () => recordSweep(database, RECONCILE),
        logger,
      }),
    );
  }
  return {
    ...dependencies,
    temporal,
    activities,
    refusals: once(() => {
      const recorder = createRefusalRecorder({
        database,
        onError: (error) => logger.warn({ err: error }, 'could not store refusals'),
      });
      closers.push(() => recorder.close());
      return recorder;
    }),
    submissions: once(() =>
      createSubmissionService({
        database,
        storage,
        outbox,
        events: services.events,
        sharedDomainLimit: services.sharedDomainLimit,
        drafts: {
          requestApproval: async (transaction, pending) =>
            (await services.draftCreation.requestApproval(transaction, pending)).draft.id,
        },
        credentials: services.credentials,
        attachments: services.attachments,
        parserPool: dependencies.parserPool(),
      }),
    ),
    async close() {
      for (const close of closers.reverse()) await close();
      await outbox.drain();
      await temporal.connection.close();
      storage.close();
      await database.close();
    },
  };
}

function createMailTransport(config: Config, simulator: () => MailTransport): MailTransport {
  if (config.MAIL_TRANSPORT === 'ses') return createSesTransport(config);
  return config.MAIL_TRANSPORT === 'smtp' ? createSmtpTransport(config) : simulator();
}

const PARSER_ENTRY = join(import.meta.dirname, 'mail-parser.ts');
