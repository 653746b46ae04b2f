import { METHODS } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';
import type { NearestOperation, OperationFinder } from './nearest-operation.ts';

/** The order of methods in `Allow`. */
const ALLOW_ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** All methods that Node parses, except CONNECT, which requests a tunnel and has no path. */
const PARSED_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** Responds with 405 and the supported methods, for every path. Install before the routes. */
export function installMethodNotAllowed(
  app: FastifyInstance,
  { operations }: { operations: OperationFinder },
): { finish(): void } {
  const methodsByPath = new Map<string, Set<string>>();
  let finished = false;
  app.addHook('onRoute', ({ url, method }) => {
    if (finished) return;
    // The router ignores a trailing slash.
    const path = url.length > 1 ? url.replace(/\/$/, '') : url;
    const methods = methodsByPath.get(path) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    methodsByPath.set(path, methods);
  });
  return {
    /** Call when all routes are registered. */
    finish() {
      finished = true;
      for (const method of PARSED_METHODS)
        if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
      for (const [url, methods] of methodsByPath) {
        const allow = ALLOW_ORDER.filter((method) => methods.has(method)).join(', ');
        const reject = async (request: FastifyRequest): Promise<never> => {
          throw methodNotAllowed(allow, await operations.find(request));
        };
        app.route({
          url,
          method: PARSED_METHODS.filter((method) => !methods.has(method)),
          config: { public: true },
          schema: { hide: true },
          // Runs before the body is read. Otherwise the response could report the body's type or size instead.
          onRequest: reject,
          handler: reject,
        });
      }
    },
  };
}

function methodNotAllowed(allow: string, nearest: NearestOperation | undefined): AppError {
  return new AppError('method_not_allowed', {
    detail: `This path supports ${allow}.`,
    fix: nearest
      ? `Did you mean ${nearest.call}? All operations are at /openapi.json.`
      : 'Use one of these methods, or find the operation at /openapi.json.',
    headers: { allow },
    ...(nearest ? { extensions: { nearest_operation: nearest.operation } } : {}),
  });
}
