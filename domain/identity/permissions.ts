/** What a credential may do (design: identity.md, "Roles and permissions"). */
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
 * What a person weighs: who may be written to, whether a sender that did harm goes on, whose name mail bears, how long
 * it is kept.
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

/** What an agent gets when nobody says otherwise. */
export const AGENT_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (name) => !RESTRICTED_PERMISSIONS.includes(name),
);
