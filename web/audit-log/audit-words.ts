import type { AuditLogEntry } from '../../domain/audit/audit-log.service.ts';

/** What people read in place of the names of actions. */
const ACTIONS: Record<string, string> = {
  'api_key.created': 'API key created',
  'api_key.revoked': 'API key revoked',
  'api_key.rotated': 'API key rotated',
  'api_key.updated': 'API key changed',
  'approved_recipient.removed': 'Approved recipient removed',
  'connection.created': 'Program connected',
  'connection.ended': 'Program disconnected',
  'domain.created': 'Domain added',
  'domain.deleted': 'Domain deleted',
  'domain.dkim_rotated': 'DKIM key of a domain rotated',
  'domain.updated': 'Domain changed',
  'draft.approved': 'Draft approved',
  'draft.rejected': 'Draft rejected',
  'environment.created': 'Environment created',
  'environment.deleted': 'Environment deleted',
  'environment.updated': 'Environment changed',
  'export.created': 'Export requested',
  'export.removed': 'Export deleted',
  'impersonation.ended': 'Support session ended',
  'impersonation.started': 'Support session begun',
  'inbox.created': 'Inbox created',
  'inbox.credentials_rotated': 'SMTP password of an inbox rotated',
  'inbox.deleted': 'Inbox deleted',
  'inbox.paused': 'Sending of an inbox paused',
  'inbox.resumed': 'Sending of an inbox resumed',
  'inbox.updated': 'Inbox changed',
  'invitation.accepted': 'Invitation accepted',
  'invitation.created': 'Person invited',
  'invitation.revoked': 'Invitation revoked',
  'limits.updated': 'Limits of the organization changed',
  'member.joined': 'Member joined',
  'member.removed': 'Member removed',
  'member.role_changed': 'Role of a member changed',
  'message.injection_dismissed': 'Alarm about a message dismissed',
  'organization.created': 'Organization created',
  'organization.deleted': 'Organization closed',
  'organization.ownership_transferred': 'Organization handed over',
  'organization.recovered': 'Organization recovered',
  'organization.tier_changed': 'Plan changed',
  'organization.updated': 'Name of the organization changed',
  'policies.updated': 'Policies changed',
  'retention_policy.postponed': 'Deletion of messages postponed',
  'retention_policy.updated': 'Retention changed',
  'sso_configuration.activated': 'Single sign-on activated',
  'sso_configuration.created': 'Single sign-on drafted',
  'sso_configuration.deleted': 'Single sign-on deleted',
  'sso_configuration.disabled': 'Single sign-on switched off',
  'sso_configuration.updated': 'Single sign-on changed',
  'sso_setup_link.created': 'Set-up link of single sign-on created',
  'user.deleted': 'Account deleted',
  'user.email_changed': 'Email address of a member changed',
  'user.mfa_added': 'Second factor added',
  'user.mfa_failed': 'Second factor failed',
  'user.mfa_removed': 'Second factor removed',
  'user.mfa_reset': 'Second factors reset by staff',
  'user.password_changed': 'Password changed',
  'user.recovered': 'Account recovered',
  'user.recovery_code_used': 'Recovery code used',
  'user.recovery_codes_replaced': 'Recovery codes replaced',
  'webhook_endpoint.created': 'Webhook endpoint created',
  'webhook_endpoint.deleted': 'Webhook endpoint deleted',
  'webhook_endpoint.secret_rotated': 'Secret of a webhook endpoint rotated',
  'webhook_endpoint.updated': 'Webhook endpoint changed',
};

/** For the filter: those that people look for. */
export const ACTION_GROUPS: readonly (readonly [action: string, text: string])[] = Object.entries(
  ACTIONS,
).sort(([, a], [, b]) => a.localeCompare(b, 'en'));

/** `policies.updated` → `Policies changed`; an unknown action in its own words. */
export function describeAction(action: string): string {
  const known = ACTIONS[action];
  if (known !== undefined) return known;
  const words = action.replaceAll(/[._]/g, ' ');
  return `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}`;
}

/** Where a person sees the resource. */
const PAGES: Record<string, (id: string) => string> = {
  api_key: (id) => `/keys/${id}`,
  connection: () => '/keys',
  domain: (id) => `/domains/${id}`,
  draft: (id) => `/drafts/${id}`,
  environment: () => '/settings/environments',
  inbox: (id) => `/inboxes/${id}`,
  invitation: () => '/members#invitations',
  message: (id) => `/messages/${id}`,
  sso_configuration: () => '/settings/single-sign-on',
  user: () => '/members',
  webhook_endpoint: (id) => `/webhooks/${id}`,
};

export interface ShownResource {
  name: string;
  /** Undefined for what has no page, or no longer exists. */
  path: string | undefined;
}

export function describeResource({
  resourceType,
  resourceId,
  resourceName,
  details,
}: AuditLogEntry): ShownResource {
  const named = [details.email, details.domain_name, details.name, details.client_name].find(
    (value) => typeof value === 'string',
  );
  return {
    name: resourceName ?? named ?? resourceId,
    path: resourceName === null ? undefined : PAGES[resourceType]?.(resourceId),
  };
}

/** One changed value. `from` is undefined where only the new value is known. */
export interface ShownChange {
  name: string;
  from: string | undefined;
  to: string;
}

/** Names that say nothing to people. */
const HIDDEN = new Set(['previous', 'fields', 'subscription_id', 'version']);

/** What changed, old and new. `from` and `to`, and `previous`, are how entries keep what was before. */
export function describeChanges(details: Record<string, unknown>): ShownChange[] {
  const previous = isObject(details.previous) ? details.previous : {};
  const role = 'from' in details && 'to' in details ? [toChange('Value', details.from, details.to)] : [];
  const others = Object.entries(details)
    .filter(([name]) => !HIDDEN.has(name) && !(role.length > 0 && (name === 'from' || name === 'to')))
    // A form sends every field: those that it left as they were are no change.
    .filter(([name]) => Object.keys(previous).length === 0 || name in previous)
    .map(([name, value]) => toChange(toWords(name), name in previous ? previous[name] : undefined, value));
  return [...role, ...others];
}

const toChange = (name: string, from: unknown, to: unknown): ShownChange => ({
  name,
  from: from === undefined ? undefined : toText(from),
  to: toText(to),
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const MAX_CHARACTERS = 300;

function toText(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : shorten(value.map(toText).join(', '));
  if (isObject(value))
    return shorten(
      Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([name, each]) => `${toWords(name).toLowerCase()} ${toText(each)}`)
        .join(', '),
    );
  return shorten(String(value));
}

const shorten = (text: string): string =>
  text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;

const NAMES: Record<string, string> = {
  requireMfa: 'Second factor required',
  enforceSso: 'Single sign-on required',
  ssoSatisfiesMfa: 'Single sign-on counts as second factor',
  sessionMaxAgeHours: 'Hours until the next sign-in',
  allowedCidrs: 'Allowed networks',
  allowed_cidrs: 'Allowed networks',
  requireSendApproval: 'Approval of sends',
  afterAlarm: 'After an alarm',
  catch_all_inbox_id: 'Inbox for other addresses',
  ip: 'Address',
};

/** `maxRecipientsPerMessage` and `max_recipients_per_message` → `Max recipients per message`. */
function toWords(name: string): string {
  const known = NAMES[name];
  if (known !== undefined) return known;
  const words = name
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase();
  return `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}`;
}
