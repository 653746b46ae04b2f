import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../domain/identity/permissions.ts';
import type { Pages } from '../shell/pages.ts';

const TABS = [
  ['score', '/reputation', 'Score', 'metrics:read'],
  ['suppressions', '/reputation/suppressions', 'Suppressions', 'suppressions:read'],
  ['lists', '/reputation/lists', 'Allow and block lists', 'lists:read'],
  ['refusals', '/reputation/refusals', 'Refused mail', 'messages:read'],
] as const satisfies (readonly [string, string, string, Permission])[];

/** The tabs of the screen that the person may open. */
export const reputationTabs = (
  request: FastifyRequest,
  pages: Pages,
  current: (typeof TABS)[number][0],
): [href: string, text: string, isCurrent: boolean][] =>
  TABS.filter(([, , , permission]) => request.scope.permissions.has(permission)).map(
    ([name, path, title]) => [pages.link(request, path), title, name === current],
  );
