import type { Permission } from './permissions.ts';

/**
 * The acts that happen later than they were asked for, each with what its requester still needs when it happens. The table
 * in docs/security.md says what happens otherwise. A guard test compares both with the code.
 */
export const DEFERRED_ACTS = {
  /** A scheduled draft, or one that was approved. */
  send: { permissions: ['messages:send'] },
  /** The approval of a scheduled draft, and recipients that an approver remembered. */
  approval: { permissions: ['messages:approve'] },
  /** Together with every permission of the role that it gives. */
  invitation: { permissions: ['members:manage'] },
  sso_setup_link: { permissions: ['sso:manage'] },
  export: { permissions: ['export:create'] },
  /** A replay to a webhook endpoint, or the cancellation of its deliveries. */
  webhook_job: { permissions: ['webhooks:manage'] },
  upgrade_request: { permissions: ['billing:manage'] },
  staff_job: { staffRoles: ['admin'] },
  announcement: { staffRoles: ['admin'] },
} as const satisfies Record<
  string,
  { permissions: readonly Permission[] } | { staffRoles: readonly ('admin' | 'support')[] }
>;

export type DeferredAct = keyof typeof DEFERRED_ACTS;
export type StaffAct = 'staff_job' | 'announcement';
export type OrganizationAct = Exclude<DeferredAct, StaffAct>;
