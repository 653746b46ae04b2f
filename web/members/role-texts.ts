import type { MemberRole } from '../../domain/identity/roles.ts';

/** What each role may do, where a person chooses one. */
export const ROLE_TEXTS: Readonly<Record<MemberRole, string>> = {
  owner: 'Owner: everything, with billing, closing and ownership',
  admin: 'Administrator: everything but billing, closing and ownership',
  developer: 'Developer: mail, approvals, domains, webhooks and own API keys',
  viewer: 'Viewer: reads mail and settings',
};
