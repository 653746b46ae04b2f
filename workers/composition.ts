import { join } from 'node:path';
import type { Logger } from 'pino';
import { createDomainActivities } from '../activities/domains.activities.ts';
import { createDraftActivities } from '../activities/drafts.activities.ts';
import { createExportActivities } from '../activities/exports.activities.ts';
import { createInboxActivities } from '../activities/inboxes.activities.ts';
import { createMaintenanceActivities } from '../activities/maintenance.activities.ts';
import { createMessageActivities } from '../activities/messages.activities.ts';
import { createNotificationActivities } from '../activities/notifications.activities.ts';
import { createRetentionActivities } from '../activities/retention.activities.ts';
import { createStorageActivities } from '../activities/stored-objects.activities.ts';
import { createUsageActivities } from '../activities/usage-alerts.activities.ts';
import { createWebhookJobActivities } from '../activities/webhook-jobs.activities.ts';
import { createWebhookActivities } from '../activities/webhooks.activities.ts';
import { createAttachmentService } from '../domain/attachments/attachment.service.ts';
import { createDkimKeys } from '../domain/domains/dkim-keys.ts';
import { overdueDomains } from '../domain/domains/overdue-domains.ts';
import { sharedDkimKey } from '../domain/domains/shared-dkim-key.ts';
import { createVerificationService } from '../domain/domains/verification.service.ts';
import { createDraftService } from '../domain/drafts/draft.service.ts';
import { overdueDrafts } from '../domain/drafts/overdue-drafts.ts';
import { entities } from '../domain/entities.ts';
import { purgeEvents } from '../domain/events/purge-events.ts';
import { createExportRunner } from '../domain/exports/export-runner.ts';
import { overdueExports } from '../domain/exports/overdue-exports.ts';
import { removeSpentReceipts } from '../domain/inbound/expired-receipts.ts';
import { createIngestService } from '../domain/inbound/ingest.service.ts';
import {
  type Authenticate,
  authenticateNothing,
  createAuthenticator,
} from '../domain/inbound/mail-authentication.ts';
import { overdueReceipts } from '../domain/inbound/overdue-receipts.ts';
import { createReceiptService, type ReceiptService } from '../domain/inbound/receipt.service.ts';
import { createSpamCheck, type ScanForSpam, scanNothing } from '../domain/inbound/spam-verdict.ts';
import { removeOldReports } from '../domain/inbound/unattributed-reports.ts';
import { createCredentialService } from '../domain/inboxes/credential.service.ts';
import { createPurgeService, overduePurges } from '../domain/inboxes/purge.service.ts';
import { foldMetrics } from '../domain/metrics/fold-metrics.ts';
import { createMailReader, type MailReader } from '../domain/mime/parser/pool.ts';
import { createNotificationService } from '../domain/notifications/notification.service.ts';
import { createNotificationSendingService } from '../domain/notifications/notification-sending.service.ts';
import { overdueNotifications } from '../domain/notifications/overdue-notifications.ts';
import { createDispatchService } from '../domain/outbound/dispatch.service.ts';
import { createOutcomeService } from '../domain/outbound/outcome.service.ts';
import { overdueMessages } from '../domain/outbound/overdue-sends.ts';
import { createSubmissionService, type SubmissionService } from '../domain/outbound/submission.service.ts';
import { createExpiredMailService } from '../domain/retention/expired-mail.service.ts';
import { createRetentionService } from '../domain/retention/retention.service.ts';
import { removeUnusedUploads, sweepObjects } from '../domain/stored-objects/sweep-objects.ts';
import { foldUsage } from '../domain/usage/fold-deltas.ts';
import { purgeUsage } from '../domain/usage/purge-usage.ts';
import { createUsageCheckService } from '../domain/usage-alerts/usage-check.service.ts';
import { createBulkJobRunner, overdueJobs } from '../domain/webhooks/bulk-job-runner.ts';
import { createDeliveryService } from '../domain/webhooks/delivery.service.ts';
import { holdForgottenDeliveries } from '../domain/webhooks/hold-deliveries.ts';
import { overdueDeliveries } from '../domain/webhooks/overdue-deliveries.ts';
import { releaseForgottenDeliveries } from '../domain/webhooks/release-held-deliveries.ts';
import { releaseWithinLimits } from '../domain/webhooks/release-over-limit.ts';
import { createWebhookEvents } from '../domain/webhooks/webhook-events.ts';
import {
  bounceDomain,
  type Config,
  feedbackAddress,
  inboundMxHost,
  spfMechanism,
  systemMailFrom,
} from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { purgeExpired } from '../platform/database/purge.ts';
import { createDnsLookup, createResolver } from '../platform/dns.ts';
import { createEgress, egressOptions } from '../platform/egress/egress.ts';
import type { MailTransport } from '../platform/mail-transport/mail-transport.ts';
import { createSesTransport, SES_WRITTEN_FIELDS } from '../platform/mail-transport/ses-transport.ts';
import { createSimulatorTransport, simulatorDomain } from '../platform/mail-transport/simulator-transport.ts';
import { createSmtpTransport } from '../platform/mail-transport/smtp-transport.ts';
import { createOutbox, type Outbox } from '../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { createReturnPaths } from '../platform/return-path.ts';
import { createRspamdScanner } from '../platform/spam-scanner.ts';
import { createStorage, type Storage } from '../platform/storage.ts';
import { createTemporalClient } from '../platform/temporal.ts';
import { MAIL_QUEUE, MAINTENANCE_QUEUE, WEBHOOKS_QUEUE } from '../workflows/task-queues.contract.ts';

export interface Composition {
  database: Database;
  storage: Storage;
  outbox: Outbox;
  temporal: ReturnType<typeof createTemporalClient>;
  reader: MailReader;
  receipts: ReceiptService;
  submissions: SubmissionService;
  /** Activities of each task queue. */
  activities: Record<string, object>;
  /** Lets what is under way end, then closes every connection. */
  close(): Promise<void>;
}

/** Puts together what a worker or listener process works with; nothing is found, everything is passed. */
export async function compose(config: Config, logger: Logger): Promise<Composition> {
  const database = await createDatabase({
    url: config.DATABASE_URL,
    poolSize: config.DATABASE_POOL_SIZE,
    entities,
  });
  const storage = createStorage(config);
  const temporal = createTemporalClient(config);
  const workflows = createWorkflowGateway(temporal);
  const outbox = createOutbox({ database, workflows, logger });
  const returnPaths = createReturnPaths({ signingKey: config.SIGNING_KEY, domain: bounceDomain(config) });
  const events = createWebhookEvents({ outbox });
  const simulator = createSimulatorTransport({ mailDomain: config.MAIL_DOMAIN });
  const mailTransport = transportOf(config, simulator);
  const outcomes = createOutcomeService({
    events,
    outbox,
    retryWindowMs: config.MAIL_RETRY_WINDOW_HOURS * 3_600_000,
    simulatorDomain: simulatorDomain(config.MAIL_DOMAIN),
  });
  const secretBox = createSecretBox(config.ENCRYPTION_KEY);
  const verifications = createVerificationService({
    database,
    events,
    dns: createDnsLookup(config),
    settings: { spfMechanism: spfMechanism(config), mxHost: inboundMxHost(config) },
  });
  const dkimKeys = createDkimKeys({
    database,
    secretBox,
    mailDomain: config.MAIL_DOMAIN,
    shared: await sharedDkimKey(config),
    unsigned: config.MAIL_TRANSPORT === 'ses' ? SES_WRITTEN_FIELDS : [],
  });
  const dispatch = createDispatchService({
    database,
    dkimKeys,
    storage,
    mailTransport,
    simulator,
    returnPaths,
    outcomes,
    events,
  });
  const reader = createMailReader({ entry: PARSER_ENTRY, processes: config.MAIL_PARSER_PROCESSES });
  const ingest = createIngestService({
    database,
    storage,
    outcomes,
    events,
    relayedIsDelivered: config.SMTP_RELAYED_IS_DELIVERED,
    reader,
    authenticate: config.AUTHENTICATE_INBOUND ? authenticatorOf(config) : authenticateNothing,
    scanForSpam: spamCheckOf(config, logger),
    largeMailsAtOnce: Math.max(1, config.MAIL_PARSER_PROCESSES - 1),
  });
  const drafts = createDraftService({ database, outbox, events });
  const deliveries = createDeliveryService({
    database,
    egress: createEgress(egressOptions(config)),
    secretBox,
    notifications: createNotificationService({ outbox }),
    timeoutMs: config.WEBHOOK_TIMEOUT_MS,
    random: Math.random,
  });
  const notifications = createNotificationSendingService({
    database,
    mailTransport,
    dkimKeys,
    systemAddress: systemMailFrom(config),
    returnPath: `notifications@${bounceDomain(config)}`,
  });
  const jobs = createBulkJobRunner({ database, outbox });
  const exports = createExportRunner({
    database,
    storage,
    notifications: createNotificationService({ outbox }),
  });
  const sources = [
    overdueMessages(database, dispatch),
    overdueReceipts(database),
    overdueDrafts(database, drafts),
    overdueDeliveries(database, deliveries),
    overdueJobs(database, jobs),
    overduePurges(database),
    overdueDomains(database, verifications),
    overdueNotifications(database, notifications),
    overdueExports(database, exports),
  ];
  return {
    database,
    storage,
    outbox,
    temporal,
    reader,
    receipts: createReceiptService({
      database,
      outbox,
      returnPaths,
      storage,
      feedbackAddress: feedbackAddress(config),
    }),
    submissions: createSubmissionService({
      database,
      storage,
      outbox,
      events,
      credentials: createCredentialService({ database }),
      attachments: createAttachmentService({ database, storage }),
      reader,
    }),
    activities: {
      [MAIL_QUEUE]: {
        ...createMessageActivities({ dispatch, ingest }),
        ...createDraftActivities({ drafts }),
        ...createNotificationActivities({ notifications }),
      },
      [WEBHOOKS_QUEUE]: createWebhookActivities({ deliveries }),
      [MAINTENANCE_QUEUE]: {
        ...createDomainActivities({ verifications }),
        ...createWebhookJobActivities({ jobs }),
        ...createUsageActivities({
          usageChecks: createUsageCheckService({
            database,
            events,
            notifications: createNotificationService({ outbox }),
            logger,
          }),
        }),
        ...createInboxActivities({ purges: createPurgeService({ database }) }),
        ...createStorageActivities({ database, storage }),
        ...createRetentionActivities({
          retention: createRetentionService({
            database,
            outbox,
            notifications: createNotificationService({ outbox }),
          }),
          expiredMail: createExpiredMailService({ database, outbox }),
        }),
        ...createExportActivities({ exports }),
        ...createMaintenanceActivities({
          outbox,
          workflows,
          sources,
          chores: {
            released: () => releaseForgottenDeliveries(database, outbox),
            withinLimits: () => releaseWithinLimits(database, outbox),
            held: () => holdForgottenDeliveries(database),
            purged: () => purgeExpired(database),
            spentReceipts: () => removeSpentReceipts(database),
            unattributedReports: () => removeOldReports(database),
            metrics: () => foldMetrics(database),
            events: () => purgeEvents(database, config.EVENT_RETENTION_DAYS),
            unusedUploads: () => removeUnusedUploads(database),
            usage: () => foldUsage(database),
            oldUsage: () => purgeUsage(database),
            exports: () => exports.tidy(),
            objects: () => sweepObjects(database, storage),
          },
          logger,
        }),
      },
    },
    close: () => closeAll({ database, storage, outbox, temporal, mailTransport, reader }),
  };
}

function transportOf(config: Config, simulator: MailTransport): MailTransport {
  if (config.MAIL_TRANSPORT === 'ses') return createSesTransport(config);
  return config.MAIL_TRANSPORT === 'smtp' ? createSmtpTransport(config) : simulator;
}

/** Together with reading and storing it stays below the 5 s a mail has that is taken in at once. */
const AUTHENTICATION_TIMEOUT_MS = 4_000;

function authenticatorOf(config: Config): Authenticate {
  const resolver = createResolver(config);
  return createAuthenticator({
    resolve: (name, type) => resolver.resolve(name, type),
    timeoutMs: AUTHENTICATION_TIMEOUT_MS,
  });
}

function spamCheckOf({ RSPAMD_URL: url, RSPAMD_TIMEOUT_MS: timeoutMs }: Config, logger: Logger): ScanForSpam {
  if (url === undefined) return scanNothing;
  return createSpamCheck(createRspamdScanner({ url, timeoutMs }), (error) =>
    logger.warn({ err: error }, 'rspamd did not judge a mail'),
  );
}

const PARSER_ENTRY = join(import.meta.dirname, 'mail-parser.ts');

async function closeAll(parts: {
  database: Database;
  storage: Storage;
  outbox: Outbox;
  temporal: ReturnType<typeof createTemporalClient>;
  mailTransport: MailTransport;
  reader: MailReader;
}): Promise<void> {
  await parts.reader.close();
  await parts.mailTransport.close();
  await parts.outbox.drain();
  await parts.temporal.connection.close();
  parts.storage.close();
  await parts.database.close();
}
