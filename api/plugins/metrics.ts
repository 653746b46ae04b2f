import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Gauge, Histogram } from 'prom-client';
import type { Database } from '../../platform/database/database.ts';
import { addDependencyMetrics, type Dependencies } from '../../platform/dependencies.ts';
import { AppError } from '../../platform/errors.ts';
import type { ServiceMetrics } from '../../platform/service-metrics.ts';
import { addConnectionMetrics, createMetricsRegistry, isMetricsToken } from '../../platform/telemetry.ts';
import type { OpenResponses } from './open-responses.ts';

export interface MetricsOptions {
  token: string | undefined;
  database: Pick<Database, 'poolUsage'>;
  dependencies: Dependencies;
  openResponses: Pick<OpenResponses, 'count'>;
  service?: Pick<ServiceMetrics, 'register'> | undefined;
}

/** Serves Prometheus metrics at `/metrics` to callers with the token. Without a configured token they are not served. */
export function installMetrics(
  app: FastifyInstance,
  { token, database, dependencies, openResponses, service }: MetricsOptions,
): void {
  if (token === undefined) {
    serveMetrics(app, async () => {
      throw metricsUnauthenticated(NOT_CONFIGURED_FIX);
    });
    return;
  }
  const registry = createMetricsRegistry('api');
  addConnectionMetrics(registry, database);
  addDependencyMetrics(registry, dependencies);
  service?.register(registry);
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from request to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  new Gauge({
    name: 'http_open_answers',
    help: 'Live streams and waiting calls held open.',
    registers: [registry],
    collect() {
      this.set(openResponses.count);
    },
  });
  app.addHook('onResponse', async ({ method, is404, routeOptions, ranOperation }, reply) => {
    // The duration of a stream says nothing about performance. A tool call is measured as its operation.
    if (routeOptions.config.heldOpen || ranOperation) return;
    // Only route patterns: one label value per unknown path would exhaust memory.
    const route = is404 ? 'unknown' : (routeOptions.url ?? 'unknown');
    duration.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
  });
  app.addHook('onClose', async () => registry.clear());

  serveMetrics(app, async (request, reply) => {
    if (!isMetricsToken(token, request.headers.authorization)) throw metricsUnauthenticated(WRONG_TOKEN_FIX);
    return reply.type(registry.contentType).send(await registry.metrics());
  });
}

const WRONG_TOKEN_FIX =
  'Send the header "Authorization: Bearer <METRICS_TOKEN>" with the value of the setting METRICS_TOKEN; `npm start` prints it.';
const NOT_CONFIGURED_FIX =
  'Set METRICS_TOKEN in the environment of the service, restart it, and send the header "Authorization: Bearer <METRICS_TOKEN>".';

function serveMetrics(
  app: FastifyInstance,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): void {
  const schema = { hide: true, operationId: 'operators.metrics' };
  app.get('/metrics', { config: { public: 'unlimited' }, schema }, handler);
}

function metricsUnauthenticated(fix: string): AppError {
  return new AppError('unauthenticated', {
    detail: 'Metrics are for the operators of the service and need their token, not an API key.',
    fix,
    headers: { 'www-authenticate': 'Bearer' },
  });
}
