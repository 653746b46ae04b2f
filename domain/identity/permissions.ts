/** The permissions of credentials. */
export const PERMISSIONS = [
  'inboxes:read',
  'inboxes:write',
  'inboxes:manage',
  'drafts:read',
  'drafts:write',
  'messages:read',
  'messages:write',
  'messages:send',
  'messages:approve',
  'threads:read',
  'webhooks:read',
  'webhooks:manage',
  'events:read',
  'metrics:read',
  'suppressions:read',
  'suppressions:manage',
  'lists:read',
  'lists:manage',
  'domains:read',
  'domains:manage',
  'usage:read',
  'usage:manage',
  'keys:manage',
  'members:read',
  'members:manage',
  'audit:read',
  'policies:manage',
  'sso:manage',
  'environments:manage',
  'retention:manage',
  'export:create',
  'org:update',
  'org:transfer',
  'org:delete',
  'billing:manage',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/**
 * Permissions that only people can have: a key must not approve what keys send, and must not close or transfer its
 * organization.
 */
const PEOPLE_ONLY: readonly Permission[] = ['messages:approve', 'org:delete', 'org:transfer'];

/** Permissions that an API key may have. */
export const KEY_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (name) => !PEOPLE_ONLY.includes(name),
);

/** Default permissions of an agent's key, which works with mail and does not administer the organization. */
export const AGENT_PERMISSIONS: readonly Permission[] = [
  'inboxes:read',
  'inboxes:write',
  'drafts:read',
  'drafts:write',
  'messages:read',
  'messages:write',
  'messages:send',
  'threads:read',
  'webhooks:read',
  'webhooks:manage',
  'events:read',
  'metrics:read',
  'suppressions:read',
  'lists:read',
  'domains:read',
  'usage:read',
];

/**
 * Permissions that a connection of an MCP host or of the CLI may have: what agents work with, but no management of webhooks,
 * which would lead mail elsewhere.
 */
export const CONNECTION_PERMISSIONS: readonly Permission[] = AGENT_PERMISSIONS.filter(
  (name) => name !== 'webhooks:manage',
);
