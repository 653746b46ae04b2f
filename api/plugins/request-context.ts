import type { FastifyInstance } from 'fastify';

/** Adds the request id to every response and logs one line per request: ids and durations, no content. */
export function installRequestContext(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const { is404, method, params, routeOptions, scope, person } = request;
    const clientId = request.headers['x-request-id'];
    request.log.info(
      {
        method,
        // The route pattern, because path and query may contain an address.
        route: is404 ? undefined : routeOptions.url,
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime),
        organizationId: scope?.organizationId,
        resourceIds: idsIn(params),
        actor: scope?.actor.id ?? person?.userId,
        impersonationId: scope?.impersonation?.id,
        clientRequestId: typeof clientId === 'string' ? clientId.slice(0, 64) : undefined,
      },
      'request',
    );
  });
}

/** A parameter that is no id may be an address. */
function idsIn(params: unknown): string[] | undefined {
  const ids = Object.values((params ?? {}) as Record<string, string>).filter((value) =>
    /^[a-z]{3}_[0-9a-z]{26}$/.test(value),
  );
  return ids.length > 0 ? ids : undefined;
}
