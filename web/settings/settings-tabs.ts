import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../domain/identity/permissions.ts';
import type { Pages } from '../shell/pages.ts';

export const SETTINGS = '/settings';

interface Tab {
  path: string;
  name: string;
  permission: Permission;
  /** Staff in a support session cannot do it, so they do not see it. */
  isHiddenFromStaff?: true;
}

const TABS: readonly Tab[] = [
  { path: SETTINGS, name: 'Organization', permission: 'inboxes:read' },
  { path: `${SETTINGS}/environments`, name: 'Environments', permission: 'inboxes:read' },
  { path: `${SETTINGS}/policies`, name: 'Sign-in policies', permission: 'policies:manage' },
  { path: `${SETTINGS}/sending`, name: 'Sending policies', permission: 'policies:manage' },
  { path: `${SETTINGS}/single-sign-on`, name: 'Single sign-on', permission: 'sso:manage' },
  { path: `${SETTINGS}/retention`, name: 'Retention', permission: 'inboxes:read' },
  { path: `${SETTINGS}/closing`, name: 'Closing', permission: 'org:delete', isHiddenFromStaff: true },
];

/** The tabs that the person may open, for `ui.tabs`. */
export function settingsTabs(pages: Pages, request: FastifyRequest) {
  const { scope, url } = request;
  const [path = ''] = url.split('?');
  const current = TABS.findLast((tab) => path === tab.path || path.startsWith(`${tab.path}/`));
  return TABS.filter(
    ({ permission, isHiddenFromStaff }) =>
      scope.permissions.has(permission) && !(isHiddenFromStaff && scope.impersonation),
  ).map((tab) => [pages.link(request, tab.path), tab.name, tab === current] as const);
}
