import { PERMISSIONS, type Permission } from './permissions.ts';

/** The roles of members, highest first. */
export const MEMBER_ROLES = ['owner', 'admin', 'developer', 'viewer'] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];

const VIEWER: readonly Permission[] = [
  'inboxes:read',
  'drafts:read',
  'messages:read',
  'threads:read',
  'webhooks:read',
  'events:read',
  'metrics:read',
  'suppressions:read',
  'lists:read',
  'domains:read',
  'usage:read',
];

const DEVELOPER: readonly Permission[] = [
  ...VIEWER,
  'inboxes:write',
  'drafts:write',
  'messages:write',
  'messages:send',
  'messages:approve',
  'webhooks:manage',
  'suppressions:manage',
  'lists:manage',
  'domains:manage',
  // Limited to keys that the member created.
  'keys:manage',
];

const OWNER_ONLY: readonly Permission[] = ['billing:manage', 'org:delete', 'org:transfer'];

/** Permissions of each role. */
export const ROLE_PERMISSIONS: Readonly<Record<MemberRole, readonly Permission[]>> = {
  owner: PERMISSIONS,
  admin: PERMISSIONS.filter((name) => !OWNER_ONLY.includes(name)),
  developer: DEVELOPER,
  viewer: VIEWER,
};

/** Whether `role` may grant, change or remove `other`. Members cannot act on a role above their own. */
export function isRoleWithin(other: MemberRole, role: MemberRole): boolean {
  return MEMBER_ROLES.indexOf(other) >= MEMBER_ROLES.indexOf(role);
}
