import type { FastifyInstance, HTTPMethods } from 'fastify';
import { AppError } from '../../platform/errors.ts';

const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Answers 405 and names the methods there are, for every path of the API. Install before the routes. */
export function installMethodNotAllowed(app: FastifyInstance): { finish(): void } {
  const served = new Map<string, Set<string>>();
  let finished = false;
  app.addHook('onRoute', ({ url, method }) => {
    if (finished || !url.startsWith('/api/')) return;
    const methods = served.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    served.set(url, methods);
  });
  return {
    /** Call when all routes are there. */
    finish() {
      finished = true;
      for (const [url, methods] of served) {
        const allow = METHODS.filter((method) => methods.has(method)).join(', ');
        app.route({
          url,
          method: METHODS.filter((method) => !methods.has(method)),
          config: { public: true },
          schema: { hide: true },
          handler: async () => {
            throw new AppError('method_not_allowed', {
              detail: `This path serves ${allow}.`,
              fix: 'Look the operation up at /docs.',
              headers: { allow },
            });
          },
        });
      }
    },
  };
}
