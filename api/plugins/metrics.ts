import type { FastifyInstance } from 'fastify';
import { Gauge, Histogram } from 'prom-client';
import { unauthenticated } from '../../domain/identity/authentication.ts';
import type { Database } from '../../platform/database/database.ts';
import { addConnectionMetrics, createMetricsRegistry, isMetricsToken } from '../../platform/telemetry.ts';
import type { OpenResponses } from './open-responses.ts';

export interface MetricsOptions {
  token: string | undefined;
  database: Pick<Database, 'poolUsage'>;
  openResponses: Pick<OpenResponses, 'count'>;
}

/** Serves Prometheus metrics at `/metrics` to callers with the token. Without a configured token the path does not exist. */
export function installMetrics(
  app: FastifyInstance,
  { token, database, openResponses }: MetricsOptions,
): void {
  if (token === undefined) return;
  const registry = createMetricsRegistry('api');
  addConnectionMetrics(registry, database);
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
  app.addHook('onResponse', async ({ method, is404, routeOptions }, reply) => {
    // The duration of a stream says nothing about performance.
    if (routeOptions.config.heldOpen) return;
    // Only route patterns: one label value per unknown path would exhaust memory.
    const route = is404 ? 'unknown' : (routeOptions.url ?? 'unknown');
    duration.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
  });
  app.addHook('onClose', async () => registry.clear());

  app.get(
    '/metrics',
    { config: { public: 'unlimited' }, schema: { hide: true, operationId: 'operators.metrics' } },
    async (request, reply) => {
      if (!isMetricsToken(token, request.headers.authorization)) throw unauthenticated();
      return reply.type(registry.contentType).send(await registry.metrics());
    },
  );
}
