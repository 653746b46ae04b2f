import type { FastifyInstance } from 'fastify';
import type { Pages } from '../pages/pages.ts';
import type { RouteDependencies } from '../route-dependencies.ts';
import { createConsole } from './console.ts';
import { impersonationPages } from './impersonation.routes.ts';
import { logPages } from './log.routes.ts';

/** Registers the pages for staff, one line per file. */
export async function registerConsole(
  app: FastifyInstance,
  dependencies: RouteDependencies & { pages: Pages },
): Promise<void> {
  const all = { ...dependencies, console: createConsole(dependencies) };
  await app.register(logPages(all));
  await app.register(impersonationPages(all));
}
