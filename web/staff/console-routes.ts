import type { FastifyInstance } from 'fastify';
import type { RouteDependencies } from '../../api/route-dependencies.ts';
import type { Pages } from '../shell/pages.ts';
import { announcementConsole } from './announcements.routes.ts';
import { createConsole } from './console.ts';
import { emailConsole } from './emails.routes.ts';
import { healthConsole } from './health.routes.ts';
import { impersonationPages } from './impersonation.routes.ts';
import { logPages } from './log.routes.ts';
import { operationsConsole } from './operations.routes.ts';
import { organizationConsole } from './organizations.routes.ts';
import { overviewConsole } from './overview.routes.ts';
import { peopleConsole } from './people.routes.ts';
import { staffConsole } from './staff-members.routes.ts';
import { toggleConsole } from './toggles.routes.ts';
import { upgradeRequestConsole } from './upgrade-requests.routes.ts';
import { workConsole } from './work.routes.ts';

/** Registers the pages for staff, one line per file. */
export async function registerConsole(
  app: FastifyInstance,
  dependencies: RouteDependencies & { pages: Pages },
): Promise<void> {
  const all = { ...dependencies, console: createConsole(dependencies) };
  await app.register(overviewConsole(all));
  await app.register(organizationConsole(all));
  await app.register(peopleConsole(all));
  await app.register(workConsole(all));
  await app.register(upgradeRequestConsole(all));
  await app.register(toggleConsole(all));
  await app.register(announcementConsole(all));
  await app.register(emailConsole(all));
  await app.register(operationsConsole(all));
  await app.register(healthConsole(all));
  await app.register(staffConsole(all));
  await app.register(logPages(all));
  await app.register(impersonationPages(all));
}
