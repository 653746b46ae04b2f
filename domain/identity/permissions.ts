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
  'retention:manage',
  'export:create',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/**
 * Permissions that agents do not get by default, because humans should decide: to whom the organization may send, whether
 * a paused sender may continue, from which domain it sends, and how long messages are kept.
 */
const RESTRICTED_PERMISSIONS: readonly Permission[] = [
  'keys:manage',
  'inboxes:manage',
  'suppressions:manage',
  'lists:manage',
  'domains:manage',
  'usage:manage',
  'retention:manage',
  'export:create',
];

/** Default permissions of an agent's key. */
export const AGENT_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (name) => !RESTRICTED_PERMISSIONS.includes(name),
);
