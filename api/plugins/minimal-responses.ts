import type { FastifyInstance, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { Permission } from '../../domain/identity/permissions.ts';
import type { MinimalResponse } from '../minimal-response.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The permission to read what a change returns. Every change with a response body has one. If it differs from
     * `permission`, the route has a `minimalResponse`.
     */
    readPermission?: Permission;
    /** The schema of the response for a credential without `readPermission`. */
    minimalResponse?: MinimalResponse;
    /** The same for 202, with which the operation returns another resource. */
    accepted?: { readPermission: Permission; minimalResponse: MinimalResponse };
  }
}

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Reduces the response of a change to a minimal one if the credential may not read the resource: a write-only key must not
 * read by writing. Install after idempotency, so that a replayed response is reduced too.
 */
export function installMinimalResponses(app: FastifyInstance): void {
  const incomplete: string[] = [];
  app.addHook('onReady', async () => {
    if (incomplete.length > 0)
      throw new Error(
        `Changes must have a readPermission, and a minimalResponse if it differs from permission: ${incomplete.join(', ')}`,
      );
  });
  app.addHook('onRoute', (route) => {
    const { permission, readPermission, minimalResponse, accepted } = route.config ?? {};
    if (
      permission &&
      returnsResource(route) &&
      (!readPermission || (readPermission !== permission && !minimalResponse))
    )
      incomplete.push(`${route.method} ${route.url}`);
    if (!readPermission || !minimalResponse) return;
    const handle = route.handler;
    route.handler = async function (this: FastifyInstance, request, reply) {
      const response: unknown = await handle.call(this, request, reply);
      const shown = reply.statusCode === 202 && accepted ? accepted : { readPermission, minimalResponse };
      if (reply.statusCode >= 300 || mayRead(request, shown.readPermission)) return response;
      reply.type(JSON_TYPE);
      // A response of the idempotency store is already serialized.
      const resource = (typeof response === 'string' ? JSON.parse(response) : response) as Record<
        string,
        unknown
      >;
      const fields = Object.keys(shown.minimalResponse.properties).filter((name) => name !== 'object');
      return JSON.stringify({
        object: 'receipt',
        ...Object.fromEntries(fields.map((name) => [name, resource[name]])),
      });
    } as RouteHandlerMethod;
  });
}

function mayRead({ scope }: FastifyRequest, permission: Permission): boolean {
  return scope.permissions.has(permission);
}

/** Whether a change returns more than an empty body. */
function returnsResource({ method, schema }: RouteOptions): boolean {
  if ([method].flat().every((name) => ['GET', 'HEAD', 'OPTIONS'].includes(name))) return false;
  const responses = Object.entries((schema?.response ?? {}) as Record<string, { type?: string }>);
  return responses.some(([status, { type }]) => status.startsWith('2') && type !== 'null');
}
