import type { Db } from '../../platform/database/tables.ts';
import type { AfterAlarm, ApprovalMode, SupportAccess } from './organization-policies.entity.ts';

/** The policies of an organization. */
export interface Policies {
  requireMfa: boolean;
  enforceSso: boolean;
  ssoSatisfiesMfa: boolean;
  sessionMaxAgeHours: number | null;
  allowedCidrs: string[];
  maxRecipientsPerMessage: number | null;
  allowedRecipientDomains: string[];
  blockedRecipientDomains: string[];
  dailySendCapPerInbox: number | null;
  requireSendApproval: ApprovalMode;
  afterAlarm: AfterAlarm;
  autoSubmittedHeader: boolean;
  supportAccess: SupportAccess;
  supportAccessUntil: Date | null;
}

export const DEFAULT_POLICIES: Policies = {
  requireMfa: false,
  enforceSso: false,
  ssoSatisfiesMfa: true,
  sessionMaxAgeHours: null,
  allowedCidrs: [],
  maxRecipientsPerMessage: null,
  allowedRecipientDomains: [],
  blockedRecipientDomains: [],
  dailySendCapPerInbox: null,
  requireSendApproval: 'off',
  afterAlarm: 'approval',
  autoSubmittedHeader: true,
  supportAccess: 'allowed',
  supportAccessUntil: null,
};

export const POLICY_COLUMNS = [
  'require_mfa as requireMfa',
  'enforce_sso as enforceSso',
  'sso_satisfies_mfa as ssoSatisfiesMfa',
  'session_max_age_hours as sessionMaxAgeHours',
  'allowed_cidrs as allowedCidrs',
  'max_recipients_per_message as maxRecipientsPerMessage',
  'allowed_recipient_domains as allowedRecipientDomains',
  'blocked_recipient_domains as blockedRecipientDomains',
  'daily_send_cap_per_inbox as dailySendCapPerInbox',
  'require_send_approval as requireSendApproval',
  'after_alarm as afterAlarm',
  'auto_submitted_header as autoSubmittedHeader',
  'support_access as supportAccess',
  'support_access_until as supportAccessUntil',
] as const;

/** Returns the defaults for an organization that has set none. */
export async function findPolicies(db: Db, organizationId: string): Promise<Policies> {
  const policies = await db
    .selectFrom('organization_policies')
    .select(POLICY_COLUMNS)
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  return policies ?? DEFAULT_POLICIES;
}
