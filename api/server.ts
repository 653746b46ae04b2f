import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { createAttachmentService } from '../domain/attachments/attachment.service.ts';
import { createListService } from '../domain/deliverability/list.service.ts';
import { createSuppressionService } from '../domain/deliverability/suppression.service.ts';
import { createDomainService } from '../domain/domains/domain.service.ts';
import { createDraftService } from '../domain/drafts/draft.service.ts';
import { entities } from '../domain/entities.ts';
import { createExportService } from '../domain/exports/export.service.ts';
import { createApiKeyService } from '../domain/identity/api-key.service.ts';
import { createCredentialService } from '../domain/inboxes/credential.service.ts';
import { createInboxService } from '../domain/inboxes/inbox.service.ts';
import { createDeletionService } from '../domain/messages/deletion.service.ts';
import { createLabelService } from '../domain/messages/label.service.ts';
import { createMessageService } from '../domain/messages/message.service.ts';
import { createMessageWaitService } from '../domain/messages/message-wait.service.ts';
import { createOutcomeService } from '../domain/messages/outcome.service.ts';
import { createRawMessageService } from '../domain/messages/raw-message.service.ts';
import { createReceiptService } from '../domain/messages/receipt.service.ts';
import { createReplyService } from '../domain/messages/reply.service.ts';
import { createMetricService } from '../domain/metrics/metric.service.ts';
import { createOrganizationService } from '../domain/organizations/organization.service.ts';
import { createMailIntake } from '../domain/providers/mail-intake.service.ts';
import { createRawMailService } from '../domain/providers/raw-mail.service.ts';
import { createSesMailService } from '../domain/providers/ses-mail.service.ts';
import { createSesNotificationService } from '../domain/providers/ses-notification.service.ts';
import { createRetentionPolicyService } from '../domain/retention/retention-policy.service.ts';
import { createThreadService } from '../domain/threads/thread.service.ts';
import { createApiCallMeter } from '../domain/usage/api-call-meter.ts';
import { createLimitService } from '../domain/usage/limit.service.ts';
import { createUsageService } from '../domain/usage/usage.service.ts';
import { createBulkJobService } from '../domain/webhooks/bulk-job.service.ts';
import { createDeliveryControlService } from '../domain/webhooks/delivery-control.service.ts';
import { createWebhookEndpointService } from '../domain/webhooks/endpoint.service.ts';
import { createEventService } from '../domain/webhooks/event.service.ts';
import { createEventReaderService } from '../domain/webhooks/event-reader.service.ts';
import { createEventStreams } from '../domain/webhooks/event-stream.ts';
import { releaseOverLimit } from '../domain/webhooks/release-over-limit.ts';
import {
  bounceDomain,
  type Config,
  feedbackAddress,
  inboundMxHost,
  loadConfig,
  spfMechanism,
  takesFromProviders,
} from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { createDnsLookup } from '../platform/dns.ts';
import { createEgress, egressOptions } from '../platform/egress/egress.ts';
import { createEventSignals } from '../platform/event-signals.ts';
import { createLogger } from '../platform/logger.ts';
import { simulatorDomain } from '../platform/mail-transport/simulator-transport.ts';
import { createOutbox, type Outbox } from '../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { createReturnPaths } from '../platform/return-path.ts';
import { createSesObjects, type SesObjects } from '../platform/ses-objects.ts';
import { createStorage, type Storage } from '../platform/storage.ts';
import { createTemporalClient, pingTemporal } from '../platform/temporal.ts';
import { type AppOptions, buildApp } from './app.ts';

/** After this a process that still has requests under way ends all the same. */
const CLOSE_TIMEOUT_MS = 10_000;

interface Parts {
  config: Config;
  database: Database;
  /** As a worker, who sees every tenant: mail of providers is anybody's. Its own where no other is configured. */
  worker?: Database | undefined;
  outbox: Outbox;
  storage: Storage;
  sesObjects: SesObjects;
  logger: Logger;
}

/** The use-cases the API offers, on the parts of this process. */
export function createServices({
  config,
  database,
  worker = database,
  outbox,
  storage,
  sesObjects,
  logger,
}: Parts): AppOptions['services'] {
  const events = createEventService({ outbox });
  const secretBox = createSecretBox(config.ENCRYPTION_KEY);
  const returnPaths = createReturnPaths({ signingKey: config.SIGNING_KEY, domain: bounceDomain(config) });
  const intake = createMailIntake({
    storage,
    receipts: createReceiptService({
      database: worker,
      outbox,
      returnPaths,
      storage,
      feedbackAddress: feedbackAddress(config),
    }),
    maxSizeBytes: config.INBOUND_MAX_SIZE_BYTES,
  });
  const messages = createMessageService({ database, outbox, events });
  const signals = createEventSignals({ url: config.SIGNALS_DATABASE_URL ?? config.DATABASE_URL, logger });
  const eventStreams = createEventStreams({ database, signals, logger });
  return {
    inboxes: createInboxService({
      database,
      outbox,
      mailDomain: config.MAIL_DOMAIN,
      feedbackAddress: feedbackAddress(config),
    }),
    credentials: createCredentialService({ database }),
    drafts: createDraftService({ database, outbox, events }),
    messages,
    messageWaits: createMessageWaitService({ database, messages, eventStreams }),
    deletions: createDeletionService({ database, outbox }),
    labels: createLabelService({ database, events }),
    attachments: createAttachmentService({ database, storage }),
    replies: createReplyService({ database, outbox, events }),
    rawMessages: createRawMessageService({ database, storage }),
    threads: createThreadService({ database }),
    apiKeys: createApiKeyService({ database }),
    domains: createDomainService({
      database,
      outbox,
      events,
      dns: createDnsLookup(config),
      secretBox,
      settings: { spfMechanism: spfMechanism(config), mxHost: inboundMxHost(config) },
      ownDomains: [config.MAIL_DOMAIN, bounceDomain(config)],
    }),
    webhookEndpoints: createWebhookEndpointService({
      database,
      outbox,
      secretBox,
      allowInsecureUrls: config.NODE_ENV !== 'production',
    }),
    webhookDeliveries: createDeliveryControlService({ database, outbox }),
    webhookJobs: createBulkJobService({ database, outbox }),
    eventReader: createEventReaderService({ database }),
    eventStreams,
    metrics: createMetricService({ database }),
    organizations: createOrganizationService({ database }),
    retentionPolicies: createRetentionPolicyService({ database, outbox }),
    suppressions: createSuppressionService({ database }),
    apiCalls: createApiCallMeter({ database, logger }),
    usage: createUsageService({ database }),
    limits: createLimitService({
      database,
      onChange: async (transaction, organizationId) => {
        await releaseOverLimit(transaction, outbox, { organizationId, now: new Date() });
      },
    }),
    allowBlockLists: createListService({ database }),
    exports: createExportService({ database, outbox, storage }),
    rawMail: createRawMailService({ intake, secret: config.PROVIDER_RAW_SECRET }),
    sesNotifications: createSesNotificationService({
      database: worker,
      outcomes: createOutcomeService({
        events,
        outbox,
        retryWindowMs: config.MAIL_RETRY_WINDOW_HOURS * 3_600_000,
        simulatorDomain: simulatorDomain(config.MAIL_DOMAIN),
      }),
      mails: createSesMailService({
        intake,
        objects: sesObjects,
        buckets: listed(config.SES_INBOUND_BUCKETS),
        onUnknown: (sesMessageId, recipients) =>
          logger.warn({ sesMessageId, recipients }, 'SES received a mail for recipients nobody has'),
      }),
      egress: createEgress({ ...egressOptions(config), requireHttps: true }),
      topicArns: listed(config.SES_TOPIC_ARNS),
    }),
  };
}

function listed(setting = ''): string[] {
  return setting.split(',').flatMap((item) => item.trim() || []);
}

export interface StartedApi {
  /** The one listened on; another than configured where that was 0. */
  port: number;
  /** Answers what is under way, then closes every connection. */
  stop(): Promise<void>;
}

export async function startApi(config: Config, logger: Logger): Promise<StartedApi> {
  const database = await createDatabase({
    url: config.DATABASE_URL,
    poolSize: config.DATABASE_POOL_SIZE,
    entities,
  });
  const worker = await connectWorker(config);
  const storage = createStorage(config);
  const sesObjects = createSesObjects(config);
  const temporal = createTemporalClient(config);
  const outbox = createOutbox({ database, workflows: createWorkflowGateway(temporal), logger });
  const app = await buildApp({
    config,
    logger,
    database,
    probes: { database: () => database.ping(), temporal: () => pingTemporal(temporal) },
    services: createServices({ config, database, worker, outbox, storage, sesObjects, logger }),
  });
  await app.listen({ host: config.API_HOST, port: config.API_PORT });
  const { address, port } = app.server.address() as AddressInfo;
  logger.info({ address, port }, 'the API listens');
  return {
    port,
    async stop() {
      await app.close();
      await outbox.drain();
      await temporal.connection.close();
      storage.close();
      sesObjects.close();
      await Promise.all([database.close(), worker?.close()]);
    },
  };
}

/** A few connections as a worker, where providers hand something over. @throws Error where the login is missing. */
async function connectWorker(config: Config): Promise<Database | undefined> {
  if (!takesFromProviders(config)) return undefined;
  if (!config.WORKER_DATABASE_URL)
    throw new Error('WORKER_DATABASE_URL is required where providers hand mail or reports over');
  return createDatabase({ url: config.WORKER_DATABASE_URL, poolSize: PROVIDER_POOL_SIZE, entities });
}

const PROVIDER_POOL_SIZE = 5;

async function main(): Promise<void> {
  const config = loadConfig();
  const logger = createLogger(config, 'api');
  const api = await startApi(config, logger);
  closeOnSignal(logger, api.stop);
}

function closeOnSignal(logger: Logger, close: () => Promise<void>): void {
  let closing = false;
  const end = (signal: NodeJS.Signals): void => {
    if (closing) return;
    closing = true;
    logger.info({ signal }, 'closing');
    setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS).unref();
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'closing failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(
      `The API did not start: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exit(1);
  });
}
