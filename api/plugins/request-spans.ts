import type { Span } from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isTracing, startSpan, within } from '../../platform/tracing/span.ts';

/**
 * Gives each request a span, in which its use-case runs. A `traceparent` of the client is ignored: it would let anyone
 * outside choose trace ids and what is sampled. Streams, health checks and metrics have none.
 */
export function installTracing(app: FastifyInstance): void {
  if (!isTracing()) return;
  const spans = new WeakMap<FastifyRequest, Span>();
  const enter = (request: FastifyRequest, done: () => void) => {
    const span = spans.get(request);
    if (span) within(span, done);
    else done();
  };
  app.addHook('onRequest', (request, _reply, done) => {
    const { method, is404, routeOptions, toolCall } = request;
    const { url, config } = routeOptions;
    if (is404 || url === undefined || config.heldOpen || /^\/(?:health\/|metrics$)/.test(url)) return done();
    const span = startSpan({
      name: `${method} ${url}`,
      kind: 'server',
      // The operation of a tool call belongs to the span of the request to /mcp.
      parent: toolCall ? undefined : 'root',
      attributes: { 'http.request.method': method, 'http.route': url, 'agent_email.request_id': request.id },
    });
    if (span) spans.set(request, span);
    enter(request, done);
  });
  // Node parses a body in the context of the socket.
  app.addHook('preValidation', (request, _reply, done) => enter(request, done));
  app.addHook('onResponse', (request, reply, done) => {
    const span = spans.get(request);
    if (!span) return done();
    span.setAttribute('http.response.status_code', reply.statusCode);
    if (request.scope) span.setAttribute('agent_email.organization_id', request.scope.organizationId);
    if (reply.statusCode >= 500) span.setAttribute('error.type', String(reply.statusCode));
    span.end();
    within(span, done);
  });
}
