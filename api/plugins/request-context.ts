import type { FastifyInstance } from 'fastify';

/** Every answer names its request, and every request leaves one line in the log: ids and times, no content. */
export function installRequestContext(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const { is404, method, routeOptions, scope } = request;
    const clientId = request.headers['x-request-id'];
    request.log.info(
      {
        method,
        // The pattern, since a path or query may hold an address.
        route: is404 ? undefined : routeOptions.url,
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime),
        organizationId: scope?.organizationId,
        actor: scope?.actor.id,
        clientRequestId: typeof clientId === 'string' ? clientId.slice(0, 64) : undefined,
      },
      'request',
    );
  });
}
