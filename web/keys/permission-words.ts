import type { Permission } from '../../domain/identity/permissions.ts';

type Words = readonly [permission: Permission, text: string];

/** What permissions let a program do, in words for people, as the pages group them. */
export const PERMISSION_GROUPS: readonly { title: string; permissions: readonly Words[] }[] = [
  {
    title: 'Mail',
    permissions: [
      ['messages:read', 'Read messages and their files'],
      ['messages:write', 'Label, mark and delete messages'],
      ['messages:send', 'Send messages, reply and forward'],
      ['threads:read', 'Read conversations'],
      ['drafts:read', 'Read drafts'],
      ['drafts:write', 'Write, change and delete drafts'],
      ['messages:approve', 'Approve what agents send'],
    ],
  },
  {
    title: 'Inboxes and domains',
    permissions: [
      ['inboxes:read', 'See inboxes'],
      ['inboxes:write', 'Create, change, pause and delete inboxes'],
      ['inboxes:manage', 'Resume paused inboxes'],
      ['domains:read', 'See domains'],
      ['domains:manage', 'Add, verify and remove domains'],
    ],
  },
  {
    title: 'Delivery',
    permissions: [
      ['webhooks:read', 'See webhooks and their deliveries'],
      ['webhooks:manage', 'Create, change and delete webhooks'],
      ['events:read', 'Read events'],
      ['metrics:read', 'Read counts and scores'],
      ['suppressions:read', 'See suppressed addresses'],
      ['suppressions:manage', 'Add and lift suppressions'],
      ['lists:read', 'See allow and block lists'],
      ['lists:manage', 'Change allow and block lists'],
    ],
  },
  {
    title: 'Organization',
    permissions: [
      ['usage:read', 'See usage, limits and calls'],
      ['usage:manage', 'Set own limits and warnings'],
      ['keys:manage', 'Create, change and revoke API keys'],
      ['members:read', 'See members'],
      ['members:manage', 'Invite, change and remove members'],
      ['audit:read', 'Read the audit log'],
      ['policies:manage', 'Change policies'],
      ['sso:manage', 'Change single sign-on'],
      ['environments:manage', 'Create and change environments'],
      ['retention:manage', 'Decide how long messages stay'],
      ['export:create', 'Export all data'],
      ['org:update', 'Change the organization'],
      ['org:transfer', 'Give the organization to another owner'],
      ['org:delete', 'Close the organization'],
      ['billing:manage', 'Change the plan and pay'],
    ],
  },
];

const WORDS = new Map(PERMISSION_GROUPS.flatMap(({ permissions }) => permissions));

export const wordsOf = (permission: Permission): string => WORDS.get(permission) ?? permission;

/** The groups with those of the permissions that they have, without empty groups. */
export const groupPermissions = (permissions: ReadonlySet<Permission>) =>
  PERMISSION_GROUPS.map((group) => ({
    ...group,
    permissions: group.permissions.filter(([permission]) => permissions.has(permission)),
  })).filter((group) => group.permissions.length > 0);
