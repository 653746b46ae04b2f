import cookie from '@fastify/cookie';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import { createKeyAuthenticator } from '../domain/api-keys/key-authenticator.ts';
import { createConnectionAuthenticator } from '../domain/connections/connection-authenticator.ts';
import { createImpersonationAuthenticator } from '../domain/impersonation/impersonation-authenticator.ts';
import { createSessionAuthenticator } from '../domain/sessions/session-authenticator.ts';
import { createStaffAuthenticator } from '../domain/staff/staff-authenticator.ts';
import type { Config } from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import { createCursors } from '../platform/cursor.ts';
import type { Database } from '../platform/database/database.ts';
import type { Dependencies } from '../platform/dependencies.ts';
import { createIdempotencyStore } from '../platform/idempotency/idempotency-store.ts';
import { createRunOnce } from '../platform/idempotency/run-once.ts';
import { newId } from '../platform/ids.ts';
import type { QueueAges } from '../platform/outbox/queue-ages.ts';
import {
  createRateLimiter,
  leaseFromDatabase,
  leaseFromMemory,
} from '../platform/rate-limit/rate-limiter.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import { docsRoutes } from './docs/docs.routes.ts';
import type { SiteFiles } from './docs/site-files.ts';
import { healthRoutes } from './health.routes.ts';
import { createLists } from './lists.ts';
import { mcpRoutes } from './mcp/mcp.routes.ts';
import { collectOperations } from './mcp/operations.ts';
import { createOriginRules } from './mcp/origins.ts';
import { createMessageViews } from './messages/message-views.ts';
import { createBrowserSignIn } from './people/browser-sign-in.ts';
import { installAccess } from './plugins/access.ts';
import { createBrowserSession } from './plugins/browser-session.ts';
import { createCookies } from './plugins/cookies.ts';
import { installDrain } from './plugins/drain.ts';
import { installErrors, malformedRequest, toAppError } from './plugins/error-responses.ts';
import { installIdempotency } from './plugins/idempotent-routes.ts';
import { installJsonBodies } from './plugins/json-body.ts';
import { installKnownDevices } from './plugins/known-device-cookies.ts';
import { installMethodNotAllowed } from './plugins/method-not-allowed.ts';
import { installMetrics } from './plugins/metrics.ts';
import { installMinimalResponses } from './plugins/minimal-responses.ts';
import { installNearestOperation } from './plugins/nearest-operation.ts';
import { installOpenResponses } from './plugins/open-responses.ts';
import { installOpenApi } from './plugins/openapi.ts';
import { installPluginNames } from './plugins/plugin-names.ts';
import { installPreconditions } from './plugins/preconditions.ts';
import { PROBLEM_TYPE, sendProblem, toProblemDocument } from './plugins/problem.ts';
import { createRefusedSends, installRefusedSends } from './plugins/refused-sends.ts';
import { installRequestBytes } from './plugins/request-bytes.ts';
import { installRequestContext } from './plugins/request-context.ts';
import { installRequestLog } from './plugins/request-log.ts';
import { installTracing } from './plugins/request-spans.ts';
import { installSecurityHeaders } from './plugins/security-headers.ts';
import { installSerialization } from './plugins/serialization.ts';
import { installStandalonePages } from './plugins/standalone-pages.ts';
import { findRequestId, installToolCalls } from './plugins/tool-calls.ts';
import { installUsageMetering } from './plugins/usage-metering.ts';
import { installValidation } from './plugins/validation.ts';
import type { Services } from './services.ts';
import { sharedSchemas } from './shared-schemas.ts';
import { registerRoutes } from './v1.ts';

export interface AppOptions {
  config: Config;
  logger: Logger;
  database: Database;
  dependencies: Dependencies;
  queueAges: QueueAges;
  services: Services;
  metrics?: Pick<ServiceMetrics, 'register'>;
  /** How long a body may stand still. */
  bodyStallTimeoutMs?: number | undefined;
  /** Reads the site of the documents; default: that of `npm run build:docs`. */
  readSite?: (() => Promise<SiteFiles>) | undefined;
}

/** Rate limit of one address for requests without a valid credential. */
const ADDRESS_LIMIT = { perSecond: 10, burst: 50 };
const BODY_LIMIT_BYTES = 1024 * 1024;
/** Applies to the encoded path: fits an email address of 320 characters, some of them percent-encoded. */
const MAX_PARAM_LENGTH = 1_024;

/** Builds the HTTP API, ready for `listen` or `inject`. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, logger, database, dependencies, queueAges, services } = options;
  const publicUrl = config.PUBLIC_URL.replace(/\/+$/, '');
  const cursors = createCursors(config.SIGNING_KEY);
  const lists = createLists(cursors);
  const cookies = createCookies({ publicUrl });
  const browserSession = createBrowserSession(cookies);
  const app = createServer(config, logger, publicUrl);

  installPluginNames(app);
  const operations = installNearestOperation(app);
  app.decorateRequest('problemCode');
  installErrors(app, { publicUrl, operations });
  installStandalonePages(app);
  installDrain(app);
  installToolCalls(app);
  installTracing(app);
  installRequestContext(app);
  await app.register(cookie);
  installKnownDevices(app, cookies);
  installSecurityHeaders(app, { publicUrl });
  installJsonBodies(app);
  installValidation(app, sharedSchemas);
  installSerialization(app, sharedSchemas);
  app.decorateRequest('filesToAttach');
  app.decorateRequest('filesOfBatch');
  const methods = installMethodNotAllowed(app, { operations });
  const refusedSends = createRefusedSends();
  installAccess(app, {
    keys: createKeyAuthenticator({ database, logger }),
    connections: createConnectionAuthenticator({ database, logger, resource: 'mcp' }),
    commandLine: createConnectionAuthenticator({ database, logger, resource: 'api' }),
    sessions: createSessionAuthenticator({
      database,
      logger,
      onBreakGlass: services.ssoBreakGlass.record,
    }),
    staff: createStaffAuthenticator({ database }),
    impersonations: createImpersonationAuthenticator({ database }),
    recordImpersonatedCall: services.recordImpersonatedCall,
    limiter: createRateLimiter({ lease: leaseFromDatabase(database), logger }),
    addressLimiter: createRateLimiter({ lease: leaseFromMemory(), logger }),
    refusedSends,
    browserSession,
    resourceMetadataUrl: `${publicUrl}/.well-known/oauth-protected-resource/mcp`,
    limits: {
      credential: { perSecond: config.RATE_LIMIT_PER_SECOND, burst: config.RATE_LIMIT_BURST },
      organization: {
        perSecond: config.ORGANIZATION_RATE_LIMIT_PER_SECOND,
        burst: config.ORGANIZATION_RATE_LIMIT_BURST,
      },
      address: ADDRESS_LIMIT,
    },
  });
  installPreconditions(app);
  installRequestBytes(app, { stallTimeoutMs: options.bodyStallTimeoutMs });
  installUsageMetering(app, { meter: services.apiCalls, refusedSends });
  const idempotencyStore = createIdempotencyStore({ secretBox: createSecretBox(config.ENCRYPTION_KEY) });
  installIdempotency(app, { database, store: idempotencyStore, publicUrl });
  installMinimalResponses(app);
  installRefusedSends(app);
  await installOpenApi(app, { publicUrl, version: '1', schemas: sharedSchemas });
  const openResponses = installOpenResponses(app, {
    accessSignals: services.accessSignals,
    perCredential: config.STREAMS_PER_CREDENTIAL,
    perProcess: config.STREAMS_PER_PROCESS,
  });
  app.addHook('onClose', () => services.eventStreams.close());
  installRequestLog(app, { recorder: services.requestRecorder });
  installMetrics(app, {
    token: config.METRICS_TOKEN,
    database,
    dependencies,
    openResponses,
    service: options.metrics,
  });

  methods.finish();
  const callableOperations = collectOperations(app);
  await app.register(docsRoutes({ publicUrl, readFiles: options.readSite }));
  await app.register(healthRoutes({ dependencies, queueAges }));
  await registerRoutes(app, {
    ...services,
    config,
    lists,
    messageViews: createMessageViews({ agentMessages: services.agentMessages, lists }),
    cursors,
    cookies,
    runOnce: createRunOnce({ database, store: idempotencyStore }),
    browserSession,
    browserSignIn: createBrowserSignIn({ cookies, browserSession }),
    openResponses,
    dependencies,
    queueAges,
    heartbeatMs: config.STREAM_HEARTBEAT_MS,
  });
  await app.register(
    mcpRoutes({
      operations: callableOperations,
      origins: createOriginRules(config),
      publicUrl,
    }),
  );
  await app.ready();
  return app;
}

function createServer(config: Config, logger: Logger, publicUrl: string): FastifyInstance {
  return Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    genReqId: () => findRequestId() ?? newId('request'),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    bodyLimit: BODY_LIMIT_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, ignoreTrailingSlash: true },
    trustProxy: config.TRUST_PROXY?.split(',').map((address) => address.trim()) ?? false,
    // On shutdown, requests in progress still get a response.
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    // Compiling the schemas of all routes may take long on a busy machine.
    pluginTimeout: 60_000,
    // Enough for 25 MiB over a slow connection. Headers time out after Node's default of one minute, and bodies of
    // unauthenticated requests are not read.
    requestTimeout: 300_000,
    // Errors of the router itself, which occur before any hook, for example a malformed URL.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      sendProblem(request, reply as FastifyReply, toAppError(error), publicUrl);
    },
    clientErrorHandler: (_error, socket) => {
      if (!socket.writable) return;
      const requestId = newId('request');
      const problem = malformedRequest();
      const body = JSON.stringify(toProblemDocument(problem, requestId, publicUrl));
      socket.end(
        `HTTP/1.1 ${problem.status} Bad Request\r\ncontent-type: ${PROBLEM_TYPE}\r\nx-request-id: ${requestId}\r\n` +
          `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
    },
  });
}
