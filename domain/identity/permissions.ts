/** What a credential may do (design: identity.md, "Roles and permissions"). */
export const PERMISSIONS = [
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
  'keys:manage',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** What an agent gets when nobody says otherwise. */
export const AGENT_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter((name) => name !== 'keys:manage');
