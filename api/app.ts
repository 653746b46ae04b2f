import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import type { AttachmentService } from '../domain/attachments/attachment.service.ts';
import type { ListService } from '../domain/deliverability/list.service.ts';
import type { SuppressionService } from '../domain/deliverability/suppression.service.ts';
import type { DomainService } from '../domain/domains/domain.service.ts';
import type { DraftService } from '../domain/drafts/draft.service.ts';
import type { ExportService } from '../domain/exports/export.service.ts';
import type { ApiKeyService } from '../domain/identity/api-key.service.ts';
import { createAuthenticationService } from '../domain/identity/authentication.service.ts';
import type { CredentialService } from '../domain/inboxes/credential.service.ts';
import type { InboxService } from '../domain/inboxes/inbox.service.ts';
import type { DeletionService } from '../domain/messages/deletion.service.ts';
import type { LabelService } from '../domain/messages/label.service.ts';
import type { MessageService } from '../domain/messages/message.service.ts';
import type { MessageWaitService } from '../domain/messages/message-wait.service.ts';
import type { RawMessageService } from '../domain/messages/raw-message.service.ts';
import type { ReplyService } from '../domain/messages/reply.service.ts';
import type { MetricService } from '../domain/metrics/metric.service.ts';
import type { OrganizationService } from '../domain/organizations/organization.service.ts';
import type { RawMailService } from '../domain/providers/raw-mail.service.ts';
import type { SesNotificationService } from '../domain/providers/ses-notification.service.ts';
import type { RetentionPolicyService } from '../domain/retention/retention-policy.service.ts';
import type { ThreadService } from '../domain/threads/thread.service.ts';
import type { ApiCallMeter } from '../domain/usage/api-call-meter.ts';
import type { LimitService } from '../domain/usage/limit.service.ts';
import type { UsageService } from '../domain/usage/usage.service.ts';
import type { BulkJobService } from '../domain/webhooks/bulk-job.service.ts';
import type { DeliveryControlService } from '../domain/webhooks/delivery-control.service.ts';
import type { WebhookEndpointService } from '../domain/webhooks/endpoint.service.ts';
import type { EventReaderService } from '../domain/webhooks/event-reader.service.ts';
import type { EventStreams } from '../domain/webhooks/event-stream.ts';
import type { Config } from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { createCursors } from '../platform/cursor.ts';
import type { Database } from '../platform/database/database.ts';
import { createIdempotencyStore } from '../platform/idempotency/idempotency.ts';
import { newId } from '../platform/ids.ts';
import {
  createRateLimiter,
  leaseFromDatabase,
  leaseFromMemory,
} from '../platform/rate-limit/rate-limiter.ts';
import { attachmentRoutes } from './attachments/attachments.routes.ts';
import { listRoutes } from './deliverability/lists.routes.ts';
import { suppressionRoutes } from './deliverability/suppressions.routes.ts';
import { domainRoutes } from './domains/domains.routes.ts';
import { draftRoutes } from './drafts/drafts.routes.ts';
import { exportRoutes } from './exports/exports.routes.ts';
import { healthRoutes, type Probe } from './health.routes.ts';
import { apiKeyRoutes } from './identity/api-keys.routes.ts';
import { credentialRoutes } from './inboxes/credentials.routes.ts';
import { inboxRoutes } from './inboxes/inboxes.routes.ts';
import { createLists } from './lists.ts';
import { deletionRoutes } from './messages/deletions.routes.ts';
import { labelRoutes } from './messages/labels.routes.ts';
import { messageRoutes } from './messages/messages.routes.ts';
import { rawRoutes } from './messages/raw.routes.ts';
import { replyRoutes } from './messages/reply.routes.ts';
import { waitRoutes } from './messages/wait.routes.ts';
import { metricRoutes } from './metrics/metrics.routes.ts';
import { organizationRoutes } from './organizations/organization.routes.ts';
import { installAccess } from './plugins/access.ts';
import { appErrorOf, installErrors, unreadable } from './plugins/errors.ts';
import { installIdempotency } from './plugins/idempotency.ts';
import { installJsonBodies } from './plugins/json-body.ts';
import { installMethodNotAllowed } from './plugins/method-not-allowed.ts';
import { installMetrics } from './plugins/metrics.ts';
import { installOpenAnswers } from './plugins/open-answers.ts';
import { installOpenApi } from './plugins/openapi.ts';
import { PROBLEM_TYPE, problemOf, sendProblem } from './plugins/problem.ts';
import { installRequestContext } from './plugins/request-context.ts';
import { installSerialization } from './plugins/serialization.ts';
import { installUsageMetering } from './plugins/usage-metering.ts';
import { installValidation } from './plugins/validation.ts';
import { rawMailRoutes } from './providers/raw-mail.routes.ts';
import { sesNotificationRoutes } from './providers/ses-notifications.routes.ts';
import { retentionPolicyRoutes } from './retention/retention-policy.routes.ts';
import { sharedSchemas } from './shared-schemas.ts';
import { threadRoutes } from './threads/threads.routes.ts';
import { usageRoutes } from './usage/usage.routes.ts';
import { deliveryRoutes } from './webhooks/deliveries.routes.ts';
import { endpointOperationRoutes } from './webhooks/endpoint-operations.routes.ts';
import { endpointRoutes } from './webhooks/endpoints.routes.ts';
import { eventStreamRoutes } from './webhooks/event-stream.routes.ts';
import { eventRoutes } from './webhooks/events.routes.ts';

export interface AppOptions {
  config: Config;
  logger: Logger;
  database: Database;
  probes: { database: Probe; temporal: Probe };
  services: {
    domains: DomainService;
    inboxes: InboxService;
    credentials: CredentialService;
    drafts: DraftService;
    messages: MessageService;
    messageWaits: MessageWaitService;
    labels: LabelService;
    deletions: DeletionService;
    attachments: AttachmentService;
    replies: ReplyService;
    rawMessages: RawMessageService;
    threads: ThreadService;
    apiKeys: ApiKeyService;
    webhookEndpoints: WebhookEndpointService;
    webhookDeliveries: DeliveryControlService;
    webhookJobs: BulkJobService;
    eventReader: EventReaderService;
    /** Closed with the app. */
    eventStreams: EventStreams;
    metrics: MetricService;
    organizations: OrganizationService;
    retentionPolicies: RetentionPolicyService;
    suppressions: SuppressionService;
    allowBlockLists: ListService;
    /** Closed with the app. */
    apiCalls: ApiCallMeter;
    usage: UsageService;
    limits: LimitService;
    exports: ExportService;
    rawMail: RawMailService;
    sesNotifications: SesNotificationService;
  };
}

/** What one address may ask for before it has shown a credential. */
const ADDRESS_LIMIT = { perSecond: 10, burst: 50 };
const BODY_LIMIT_BYTES = 1024 * 1024;
/** As it is written in the path: an address of 320 characters, some of them percent-encoded. */
const MAX_PARAM_LENGTH = 1_024;

/** The HTTP API, ready to listen or to be injected into. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, logger, database, probes, services } = options;
  const publicUrl = config.PUBLIC_URL.replace(/\/+$/, '');
  const cursors = createCursors(config.SIGNING_KEY);
  const lists = createLists(cursors);
  const app = createServer(config, logger, publicUrl);

  installErrors(app, { publicUrl });
  installRequestContext(app);
  installJsonBodies(app);
  installValidation(app, sharedSchemas);
  installSerialization(app, sharedSchemas);
  app.decorateRequest('filesToAttach');
  const methods = installMethodNotAllowed(app);
  installAccess(app, {
    authentication: createAuthenticationService({ database, logger }),
    limiter: createRateLimiter({ lease: leaseFromDatabase(database), logger }),
    addressLimiter: createRateLimiter({ lease: leaseFromMemory(), logger }),
    limits: {
      credential: { perSecond: config.RATE_LIMIT_PER_SECOND, burst: config.RATE_LIMIT_BURST },
      organization: {
        perSecond: config.ORGANIZATION_RATE_LIMIT_PER_SECOND,
        burst: config.ORGANIZATION_RATE_LIMIT_BURST,
      },
      address: ADDRESS_LIMIT,
    },
  });
  installUsageMetering(app, { meter: services.apiCalls });
  const secretBox = createSecretBox(config.ENCRYPTION_KEY);
  installIdempotency(app, { database, store: createIdempotencyStore({ secretBox }), publicUrl });
  await installOpenApi(app, { publicUrl, version: '1', schemas: sharedSchemas });
  const openAnswers = installOpenAnswers(app, {
    perCredential: config.STREAMS_PER_CREDENTIAL,
    perProcess: config.STREAMS_PER_PROCESS,
  });
  app.addHook('onClose', () => services.eventStreams.close());
  const live = { ...services, cursors, openAnswers, heartbeatMs: config.STREAM_HEARTBEAT_MS };
  installMetrics(app, { token: config.METRICS_TOKEN, database, openAnswers });

  await app.register(healthRoutes({ probes }));
  await app.register(
    async (v1) => {
      await v1.register(organizationRoutes({ ...services, lists }));
      await v1.register(usageRoutes({ ...services, lists }));
      await v1.register(retentionPolicyRoutes(services));
      await v1.register(apiKeyRoutes({ ...services, lists }));
      await v1.register(domainRoutes({ ...services, lists }));
      await v1.register(inboxRoutes({ ...services, lists }));
      await v1.register(credentialRoutes({ ...services, config }));
      await v1.register(draftRoutes({ ...services, lists }));
      await v1.register(messageRoutes({ ...services, lists }));
      await v1.register(waitRoutes(live));
      await v1.register(labelRoutes(services));
      await v1.register(deletionRoutes(services));
      await v1.register(attachmentRoutes(services));
      await v1.register(replyRoutes(services));
      await v1.register(rawRoutes(services));
      await v1.register(threadRoutes({ ...services, lists }));
      await v1.register(suppressionRoutes({ ...services, lists }));
      await v1.register(listRoutes({ ...services, lists }));
      await v1.register(exportRoutes(services));
      await v1.register(rawMailRoutes(services));
      await v1.register(sesNotificationRoutes(services));
      for (const path of ['/webhooks/endpoints', '/webhook-endpoints'] as const) {
        await v1.register(endpointRoutes({ ...services, lists, path }));
        await v1.register(endpointOperationRoutes({ ...services, lists, path }));
      }
      await v1.register(deliveryRoutes(services));
      await v1.register(metricRoutes(services));
      await v1.register(eventRoutes({ ...services, lists }));
      await v1.register(eventStreamRoutes(live));
    },
    { prefix: '/api/v1' },
  );
  // The specification writes these without the prefix.
  await app.register(retentionPolicyRoutes({ ...services, unversioned: true }));
  await app.register(exportRoutes({ ...services, unversioned: true }));
  methods.finish();
  await app.ready();
  return app;
}

function createServer(config: Config, logger: Logger, publicUrl: string): FastifyInstance {
  return Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    genReqId: () => newId('request'),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    bodyLimit: BODY_LIMIT_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, ignoreTrailingSlash: true },
    trustProxy: config.TRUST_PROXY?.split(',').map((address) => address.trim()) ?? false,
    // A request under way when the process is asked to end still gets its answer.
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    // A busy machine may take its time to compile the schemas of every route.
    pluginTimeout: 60_000,
    // 25 MiB over a slow line; the headers have Node's own minute, and a body is read only of who may send it.
    requestTimeout: 300_000,
    // Refusals of the router itself, before any hook: a path that is no URL.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      sendProblem(request, reply as FastifyReply, appErrorOf(error), publicUrl);
    },
    clientErrorHandler: (_error, socket) => {
      if (!socket.writable) return;
      const requestId = newId('request');
      const problem = unreadable();
      const body = JSON.stringify(problemOf(problem, requestId, publicUrl));
      socket.end(
        `HTTP/1.1 ${problem.status} Bad Request\r\ncontent-type: ${PROBLEM_TYPE}\r\nx-request-id: ${requestId}\r\n` +
          `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
    },
  });
}
