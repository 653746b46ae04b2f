import type { Permission } from '../../domain/identity/permissions.ts';

/** An entry of the sidebar. It is shown to those who may open it. */
export interface Screen {
  path: string;
  name: string;
  /** Undefined: open to every member. */
  permission: Permission | undefined;
  /** Paths of pages without an entry of their own that belong to this one. */
  parts?: readonly string[];
  group: 'Mail' | 'Delivery' | 'Organization';
}

export const SCREENS: readonly Screen[] = [
  { path: '/overview', name: 'Overview', permission: 'usage:read', group: 'Mail' },
  { path: '/inboxes', name: 'Inboxes', permission: 'inboxes:read', group: 'Mail' },
  { path: '/messages', name: 'Messages', permission: 'messages:read', group: 'Mail' },
  { path: '/drafts', name: 'Drafts', permission: 'drafts:read', group: 'Mail' },
  { path: '/approvals', name: 'Approvals', permission: 'messages:approve', group: 'Mail' },
  { path: '/domains', name: 'Domains', permission: 'domains:read', group: 'Delivery' },
  { path: '/webhooks', name: 'Webhooks', permission: 'webhooks:read', group: 'Delivery' },
  { path: '/reputation', name: 'Reputation', permission: 'suppressions:read', group: 'Delivery' },
  {
    path: '/usage',
    name: 'Usage',
    permission: 'usage:read',
    parts: ['/billing'],
    group: 'Organization',
  },
  { path: '/requests', name: 'Requests', permission: 'usage:read', group: 'Organization' },
  { path: '/keys', name: 'Keys and connections', permission: 'usage:read', group: 'Organization' },
  { path: '/members', name: 'Members', permission: 'members:read', group: 'Organization' },
  { path: '/settings', name: 'Settings', permission: 'inboxes:read', group: 'Organization' },
  { path: '/audit-log', name: 'Audit log', permission: 'audit:read', group: 'Organization' },
];
