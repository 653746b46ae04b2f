import { METHODS } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { AppError } from '../../platform/errors.ts';

/** In the order `Allow` names them. */
const ALLOW_ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** All that Node reads, but for CONNECT, which asks for a tunnel and has no path. */
const PARSED_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** Answers 405 and names the methods there are, for every path. Install before the routes. */
export function installMethodNotAllowed(app: FastifyInstance): { finish(): void } {
  const served = new Map<string, Set<string>>();
  let finished = false;
  app.addHook('onRoute', ({ url, method }) => {
    if (finished) return;
    // The router takes both spellings for one path.
    const path = url.length > 1 ? url.replace(/\/$/, '') : url;
    const methods = served.get(path) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    served.set(path, methods);
  });
  return {
    /** Call when all routes are there. */
    finish() {
      finished = true;
      for (const method of PARSED_METHODS)
        if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
      for (const [url, methods] of served) {
        const allow = ALLOW_ORDER.filter((method) => methods.has(method)).join(', ');
        const refuse = async (): Promise<never> => {
          throw methodNotAllowed(allow);
        };
        app.route({
          url,
          method: PARSED_METHODS.filter((method) => !methods.has(method)),
          config: { public: true },
          schema: { hide: true },
          // Before a body is read, whose type or size would be told of instead.
          onRequest: refuse,
          handler: refuse,
        });
      }
    },
  };
}

function methodNotAllowed(allow: string): AppError {
  return new AppError('method_not_allowed', {
    detail: `This path serves ${allow}.`,
    fix: 'Look the operation up at /docs.',
    headers: { allow },
  });
}
