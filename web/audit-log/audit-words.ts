import type { AuditAction } from '../../domain/audit/audit-actions.ts';
import type { AuditLogEntry } from '../../domain/audit/audit-log.service.ts';
import { formatTime } from '../shell/formats.ts';
import { EVENT_WORDS } from '../webhooks/words.ts';

/** What people read in place of the names of actions. */
const ACTIONS: Readonly<Record<AuditAction, string>> = {
  'announcement.created': 'Announcement published',
  'announcement.withdrawn': 'Announcement withdrawn',
  'api_key.created': 'API key created',
  'api_key.revoked': 'API key revoked',
  'api_key.rotated': 'API key rotated',
  'api_key.updated': 'API key changed',
  'approved_recipient.removed': 'Approved recipient removed',
  'connection.created': 'Program connected',
  'connection.ended': 'Program disconnected',
  'domain.created': 'Domain added',
  'domain.deleted': 'Domain deleted',
  'domain.dkim_activated': 'New DKIM key of a domain in use',
  'domain.dkim_rotated': 'DKIM key of a domain rotated',
  'domain.failed': 'Domain not verified',
  'domain.updated': 'Domain changed',
  'domain.verified': 'Domain verified',
  'draft.approved': 'Draft approved',
  'draft.rejected': 'Draft rejected',
  'environment.created': 'Environment created',
  'environment.deleted': 'Environment deleted',
  'environment.reinstated': 'Suspension of an environment lifted',
  'environment.suspended': 'Environment suspended',
  'environment.updated': 'Environment changed',
  'export.created': 'Export requested',
  'export.refused': 'Export refused',
  'export.removed': 'Export deleted',
  'impersonation.ended': 'Support session ended',
  'impersonation.started': 'Support session begun',
  'inbox.created': 'Inbox created',
  'inbox.credentials_rotated': 'SMTP password of an inbox rotated',
  'inbox.deleted': 'Inbox deleted',
  'inbox.purged': 'Inbox deleted with its messages',
  'inbox.reinstated': 'Suspension of an inbox lifted',
  'inbox.sending_paused': 'Sending of an inbox paused',
  'inbox.sending_resumed': 'Sending of an inbox resumed',
  'inbox.suspended': 'Inbox suspended',
  'inbox.updated': 'Inbox changed',
  'invitation.accepted': 'Invitation accepted',
  'invitation.created': 'Person invited',
  'invitation.revoked': 'Invitation revoked',
  'limit_override.removed': 'Limit of staff removed',
  'limit_override.set': 'Limit set by staff',
  'limits.updated': 'Limits of the organization changed',
  'list_entry.created': 'List entry created',
  'list_entry.removed': 'List entry removed',
  'list_entry.updated': 'List entry changed',
  'member.joined': 'Member joined',
  'member.removed': 'Member removed',
  'member.role_changed': 'Role of a member changed',
  'message.injection_dismissed': 'Alarm about a message dismissed',
  'organization.created': 'Organization created',
  'organization.deleted': 'Organization closed',
  'organization.owner_reassigned': 'Owner of the organization replaced by staff',
  'organization.ownership_transferred': 'Organization handed over',
  'organization.recovered': 'Organization recovered',
  'organization.reinstated': 'Suspension of the organization lifted',
  'organization.suspended': 'Organization suspended',
  'organization.tier_changed': 'Plan changed',
  'organization.updated': 'Name of the organization changed',
  'outbox.retried': 'Outbox tried again',
  'payment_grace.ended': 'Overdue payment closed',
  'payment_grace.extended': 'Time to pay extended',
  'payment_grace.recovered': 'Overdue payment arrived',
  'payment_grace.started': 'Payment overdue',
  'policies.updated': 'Policies changed',
  'retention_policy.postponed': 'Deletion of messages postponed',
  'retention_policy.updated': 'Retention changed',
  'schedule.unpaused': 'Schedule resumed',
  'sso.break_glass_used': 'Single sign-on bypassed by an owner',
  'sso_configuration.activated': 'Single sign-on activated',
  'sso_configuration.created': 'Single sign-on drafted',
  'sso_configuration.deleted': 'Single sign-on deleted',
  'sso_configuration.disabled': 'Single sign-on switched off',
  'sso_configuration.discarded': 'Changes of single sign-on discarded',
  'sso_configuration.refreshed': 'Single sign-on metadata refreshed',
  'sso_configuration.updated': 'Single sign-on changed',
  'sso_identity.linked': 'Account linked with single sign-on',
  'sso_setup_link.created': 'Set-up link of single sign-on created',
  'sso_setup_link.revoked': 'Set-up link of single sign-on revoked',
  'sso_setup_link.used': 'Set-up link of single sign-on used',
  'staff.added': 'Staff member added',
  'staff.removed': 'Staff member removed',
  'staff.role_changed': 'Role of a staff member changed',
  'staff_job.created': 'Staff job started',
  'subscription.cancellation_changed': 'Cancellation of the subscription changed',
  'subscription.plan_changed': 'Plan of the subscription changed',
  'suppression.created': 'Suppression created',
  'suppression.removed': 'Suppression removed',
  'system_email.retried': 'Email of the service sent again by staff',
  'toggle.switched_off': 'Feature switched off',
  'toggle.switched_on': 'Feature switched on',
  'upgrade_request.approved': 'Larger plan approved',
  'upgrade_request.created': 'Larger plan asked for',
  'upgrade_request.rejected': 'Larger plan refused',
  'user.deleted': 'Account deleted',
  'user.email_changed': 'Email address of a member changed',
  'user.mfa_added': 'Second factor added',
  'user.mfa_failed': 'Second factor failed',
  'user.mfa_removed': 'Second factor removed',
  'user.mfa_reset': 'Second factors reset by staff',
  'user.oauth_linked': 'Sign-in provider linked',
  'user.oauth_unlinked': 'Sign-in provider unlinked',
  'user.passkey_refused': 'Copied passkey refused',
  'user.password_changed': 'Password changed',
  'user.recovered': 'Account recovered',
  'user.recovery_code_used': 'Recovery code used',
  'user.recovery_codes_replaced': 'Recovery codes replaced',
  'user.reinstated': 'Suspension of an account lifted',
  'user.sessions_revoked': 'Sessions ended by staff',
  'user.suspended': 'Account suspended',
  'webhook_endpoint.created': 'Webhook endpoint created',
  'webhook_endpoint.deleted': 'Webhook endpoint deleted',
  'webhook_endpoint.deliveries_canceled': 'Deliveries of a webhook endpoint canceled',
  'webhook_endpoint.replayed': 'Events of a webhook endpoint replayed',
  'webhook_endpoint.secret_rotated': 'Secret of a webhook endpoint rotated',
  'webhook_endpoint.updated': 'Webhook endpoint changed',
  'webhook_job.refused': 'Webhook job refused',
  'workflow.canceled': 'Run canceled by staff',
  'workflow.resolved': 'Run resolved by staff',
  'workflow.retried': 'Run tried again by staff',
  'workflow.terminated': 'Run ended by staff',
};

/** Only the service's own log has these. */
const OF_THE_SERVICE = /^(?:announcement|outbox|schedule|staff|staff_job|system_email|toggle)\./;

/** For the filter: everything that the log of an organization may have. */
export const ACTION_GROUPS: readonly (readonly [action: string, text: string])[] = Object.entries(ACTIONS)
  .filter(([action]) => !OF_THE_SERVICE.test(action))
  .sort(([, a], [, b]) => a.localeCompare(b, 'en'));

/** `policies.updated` → `Policies changed`; an action of a former version in its own words. */
export function describeAction(action: string): string {
  const known: string | undefined = ACTIONS[action as AuditAction];
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
  resourceExists,
  details,
}: Pick<
  AuditLogEntry,
  'resourceType' | 'resourceId' | 'resourceName' | 'resourceExists' | 'details'
>): ShownResource {
  // A draft that was sent no longer exists, but its message has a page.
  if (resourceType === 'draft' && resourceName === null && typeof details.message_id === 'string')
    return { name: 'The message', path: `/messages/${details.message_id}` };
  const named = [details.email, details.domain_name, details.name, details.client_name].find(
    (value) => typeof value === 'string',
  );
  return {
    name: resourceName ?? named ?? resourceId,
    path: resourceExists ? PAGES[resourceType]?.(resourceId) : undefined,
  };
}

/** One changed value. `from` is undefined where only the new value is known. */
export interface ShownChange {
  name: string;
  from: string | undefined;
  to: string;
}

/** Names that say nothing to people. */
const HIDDEN = new Set(['previous', 'fields', 'job_id', 'message_id', 'subscription_id', 'version']);

/** What changed, old and new. `from` and `to`, and `previous`, are how entries keep what was before. */
export function describeChanges(details: Record<string, unknown>): ShownChange[] {
  const previous = isObject(details.previous) ? details.previous : {};
  const role = 'from' in details && 'to' in details ? [toChange('Value', details.from, details.to)] : [];
  const others = Object.entries(details)
    // What was and is empty says nothing.
    .filter(([name, value]) => !isEmpty(value) || (name in previous && !isEmpty(previous[name])))
    .filter(([name]) => !HIDDEN.has(name) && !(role.length > 0 && (name === 'from' || name === 'to')))
    // A form sends every field: those that it left as they were are no change.
    .filter(([name]) => Object.keys(previous).length === 0 || name in previous)
    .map(([name, value]) => toChange(toWords(name), name in previous ? previous[name] : undefined, value));
  return [...role, ...others];
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0);

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
  const text = String(value);
  if (TIME.test(text)) return `${formatTime(new Date(text))} UTC`;
  return EVENT_NAMES.get(text) ?? shorten(shortenId(text));
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** `message.delivered` → `Message delivered`. */
const EVENT_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(EVENT_WORDS).map(([type, [name]]) => [type, name]),
);

/** People know things by their names: the end of an id is enough to compare it. */
const shortenId = (text: string): string =>
  text.replace(/^([a-z]{2,8})_[0-9a-hjkmnp-tv-z]{20}([0-9a-hjkmnp-tv-z]{6})$/, '$1_…$2');

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
