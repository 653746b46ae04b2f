import type { FastifyInstance } from 'fastify';
import { AppError } from '../../platform/errors.ts';
import type { NearestOperation, OperationFinder } from './nearest-operation.ts';

/** The order of methods in `Allow`. */
const ALLOW_ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Responds with 405 and the supported methods where the path exists. Install before the routes. */
export function installMethodNotAllowed(
  app: FastifyInstance,
  { operations }: { operations: OperationFinder },
): { finish(): void } {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPath.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    methodsByPath.set(url, methods);
  });
  return {
    /** Call after the hooks that limit and count requests. */
    finish() {
      // Before the body is read. Otherwise the response could report the body's type or size instead.
      app.addHook('onRequest', async (request) => {
        if (!request.is404) return;
        const methods = findMethods(methodsByPath, request.url);
        if (methods.size > 0) throw methodNotAllowed(methods, await operations.find(request));
      });
    },
  };
}

/** The methods of all routes whose path matches: `/drafts/:id` and `/drafts/latest` match the same path. */
function findMethods(methodsByPath: ReadonlyMap<string, ReadonlySet<string>>, url: string): Set<string> {
  const segments = split(url.split(/[?#]/, 1)[0] ?? '');
  const found = new Set<string>();
  for (const [path, methods] of methodsByPath)
    if (matches(split(path), segments)) for (const method of methods) found.add(method);
  return found;
}

/** The router ignores a trailing slash. */
const split = (path: string): string[] => path.replace(/(?<=.)\/$/, '').split('/');

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    (pattern.at(-1) === '*' ? pattern.length <= segments.length : pattern.length === segments.length) &&
    pattern.every(
      (part, index) =>
        part === '*' || part === segments[index] || (part[0] === ':' && segments[index] !== ''),
    )
  );
}

function methodNotAllowed(methods: ReadonlySet<string>, nearest: NearestOperation | undefined): AppError {
  const allow = ALLOW_ORDER.filter((method) => methods.has(method)).join(', ');
  return new AppError('method_not_allowed', {
    detail: `This path supports ${allow}.`,
    fix: nearest
      ? `Did you mean ${nearest.call}? All operations are at /openapi.json.`
      : 'Use one of these methods, or find the operation at /openapi.json.',
    headers: { allow },
    ...(nearest ? { extensions: { nearest_operation: nearest.operation } } : {}),
  });
}
