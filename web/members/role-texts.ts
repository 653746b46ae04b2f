import type { MemberRole } from '../../domain/identity/roles.ts';

/** The choices of a role. They are short, because a closed list cuts longer ones off on phones. */
export const ROLE_TEXTS: Readonly<Record<MemberRole, string>> = {
  owner: 'Owner',
  admin: 'Administrator',
  developer: 'Developer',
  viewer: 'Viewer',
};

/** What each role may do, beside the choice. */
export const ROLE_HINT =
  'Owners do everything. Administrators do everything but billing, closing and ownership. Developers work with mail, approvals, domains, webhooks and their own API keys. Viewers read mail and settings.';
