import type { OrganizationAct } from '../identity/requester.ts';
import type { UsageCounter } from '../usage/counters.ts';
import type { LimitKind } from '../usage/tiers.ts';
import { ACCOUNT_TEMPLATES, type AccountTemplateParams } from './account-templates.ts';
import { ADMINISTRATION_TEMPLATES, type AdministrationTemplateParams } from './administration-templates.ts';
import { BILLING_TEMPLATES, type BillingTemplateParams } from './billing-templates.ts';
import { formatUtc } from './format-utc.ts';
import { ORGANIZATION_TEMPLATES, type OrganizationTemplateParams } from './organization-templates.ts';
import type { EmailContent } from './render-email.ts';
import { SSO_TEMPLATES, type SsoTemplateParams } from './sso-templates.ts';
import { STAFF_ACTION_TEMPLATES, type StaffActionTemplateParams } from './staff-action-templates.ts';

/** Parameters of each template. All plain text: rendering escapes it. */
export interface TemplateParams
  extends AccountTemplateParams,
    AdministrationTemplateParams,
    BillingTemplateParams,
    OrganizationTemplateParams,
    SsoTemplateParams,
    StaffActionTemplateParams {
  'webhook-endpoint-disabled': {
    endpointId: string;
    environmentId: string;
    url: string;
    reason: string;
    /** Formatted; null if earlier attempts succeeded. */
    failingSince: string | null;
  };
  'export-ready': {
    organizationId: string;
    exportId: string;
    keyId: string;
    /** Null if the key no longer exists. */
    keyName: string | null;
    sizeBytes: number;
    expiresAt: string;
  };
  'api-key-expiring': {
    organizationId: string;
    keyId: string;
    keyName: string;
    lastFour: string;
    expiresAt: string;
  };
  'approvals-pending': {
    organizationId: string;
    /** Number of drafts that wait now. */
    count: number;
    /** ISO 8601 UTC; when the first of them is rejected. */
    expiresAt: string;
  };
  'act-refused': {
    organizationId: string;
    act: OrganizationAct;
    resourceId: string;
    /** Name or address, and id. */
    requester: string;
    /** A sentence. */
    problem: string;
  };
  'retention-notice': RetentionWarningParams;
  'retention-final-notice': RetentionWarningParams;
  'retention-reminder': {
    organizationId: string;
    days: number;
    /** Formatted; messages older than this are deleted within a month. */
    before: string;
  };
  'organization-deleted': OrganizationDeletionParams & { at: string; by: string; ip: string };
  'organization-deletion-reminder': OrganizationDeletionParams;
  'organization-recovered': { organizationId: string; name: string; at: string; by: string; ip: string };
  'usage-warning': UsageAlertParams;
  'usage-exceeded': UsageAlertParams;
}

interface OrganizationDeletionParams {
  organizationId: string;
  name: string;
  /** Formatted. */
  recoverableUntil: string;
}

interface UsageAlertParams {
  organizationId: string;
  counter: UsageCounter;
  current: number;
  limit: number;
  percentage: number;
  kind: LimitKind;
  /** Usage beyond the limit is billed. Absent in emails of earlier versions. */
  isBilled?: boolean;
  /** Date on which the counter restarts; null for `storage_bytes`. */
  resetsAt: string | null;
}

interface RetentionWarningParams {
  organizationId: string;
  days: number;
  /** Formatted. */
  firstDeletionAt: string;
}

export type TemplateName = keyof TemplateParams;

/**
 * Emails about the security of an account, which are sent before all others. They include the email about an export,
 * which reveals that a stolen key is copying the organization's data.
 */
const SECURITY_NOTICES: ReadonlySet<TemplateName> = new Set<TemplateName>([
  'export-ready',
  'organization-deleted',
  'organization-recovered',
  'owner-reassigned',
  ...(Object.keys(ACCOUNT_TEMPLATES) as TemplateName[]),
  ...(Object.keys(ORGANIZATION_TEMPLATES) as TemplateName[]),
  ...(Object.keys(SSO_TEMPLATES) as TemplateName[]),
  ...(Object.keys(STAFF_ACTION_TEMPLATES) as TemplateName[]).filter((name) => name !== 'announcement'),
]);
export const isSecurityNotice = (template: TemplateName): boolean => SECURITY_NOTICES.has(template);

const TEMPLATES: { [Name in TemplateName]: (params: TemplateParams[Name]) => EmailContent } = {
  ...ACCOUNT_TEMPLATES,
  ...ADMINISTRATION_TEMPLATES,
  ...BILLING_TEMPLATES,
  ...ORGANIZATION_TEMPLATES,
  ...SSO_TEMPLATES,
  ...STAFF_ACTION_TEMPLATES,
  'webhook-endpoint-disabled': ({ endpointId, environmentId, url, reason, failingSince }) => ({
    subject: `Webhook endpoint disabled: ${formatHost(url)}`,
    body: [
      'One of your webhook endpoints has been disabled. We keep its events and deliver them once you enable the endpoint again.',
      [
        ['Endpoint', endpointId],
        ['Environment', environmentId],
        ['URL', url],
        ['Reason', reason],
        ...(failingSince === null ? [] : [['Failing since', failingSince] as [string, string]]),
      ],
      `Once the receiver works again, enable the endpoint: PATCH /api/v1/webhooks/endpoints/${endpointId} with {"disabled": false}. Pending events are then delivered, oldest first.`,
    ],
  }),
  'api-key-expiring': ({ organizationId, keyId, keyName, lastFour, expiresAt }) => ({
    subject: `API key ${keyId} expires on ${expiresAt}`,
    body: [
      'An API key of your organization expires soon. Requests with it will then be refused.',
      [
        ['Organization', organizationId],
        ['Key', `${keyName} (${keyId}, ends in ${lastFour})`],
        ['Expires', expiresAt],
      ],
      { label: 'Look at the key', path: `/keys/${keyId}?org=${organizationId}` },
      `To keep it, give it a later end there, or with PATCH /api/v1/api-keys/${keyId} and {"expires_at": "…"}. To replace it, create another one. An expired key cannot be renewed.`,
    ],
  }),
  'approvals-pending': ({ organizationId, count, expiresAt }) => ({
    subject: count === 1 ? 'A message waits for your approval' : `${count} messages wait for your approval`,
    body: [
      'An agent of your organization wants to send email, and a policy requires that a person approves it.',
      [
        ['Organization', organizationId],
        ['Waiting', String(count)],
        ['First one expires', formatUtc(new Date(expiresAt))],
      ],
      { label: 'Review what waits', path: '/approvals' },
      'You get at most one of these emails in ten minutes. A message without a decision is rejected when its time is over.',
    ],
    footer:
      'You received this email because you may approve messages of the organization. Replies to this address are not monitored.',
  }),

  'act-refused': ({ organizationId, act, resourceId, requester, problem }) => ({
    subject: `${REFUSED_ACTS[act]} did not happen: ${requester} no longer has permission`,
    body: [
      'Something that was planned in your organization did not happen, because its requester no longer has permission.',
      [
        ['Organization', organizationId],
        ['What', `${REFUSED_ACTS[act]} (${resourceId})`],
        ['Requested by', requester],
        ['Reason', problem],
      ],
      'If it should still happen, someone with permission must request it again. A rejected draft keeps its content: GET /api/v1/drafts?send_status=rejected lists them.',
      'You get at most one such email an hour about the same requester. The audit log names every refusal: GET /api/v1/org/audit-log.',
    ],
    footer:
      'You received this email because you are an owner or admin of the organization. Replies to this address are not monitored.',
  }),

  'retention-notice': ({ organizationId, days, firstDeletionAt }) => ({
    subject: `Messages older than ${formatDays(days)} will be deleted starting ${firstDeletionAt}`,
    body: [
      `Your organization’s retention policy was changed. Messages older than ${formatDays(days)} and their attachments will be permanently deleted. Until then nothing changes.`,
      [
        ['Organization', organizationId],
        ['Retention period', formatDays(days)],
        ['First deletion', `first daily run after ${firstDeletionAt}`],
      ],
      ...postponeInstructions(organizationId),
    ],
  }),

  'retention-final-notice': ({ organizationId, days, firstDeletionAt }) => ({
    subject: `Messages older than ${formatDays(days)} will be deleted tomorrow`,
    body: [
      `Under your organization’s retention policy, messages older than ${formatDays(days)} and their attachments are about to be permanently deleted.`,
      [
        ['Organization', organizationId],
        ['Retention period', formatDays(days)],
        ['Deletion starts', firstDeletionAt],
      ],
      ...postponeInstructions(organizationId),
    ],
  }),

  'retention-reminder': ({ organizationId, days, before }) => ({
    subject: `Reminder: messages older than ${formatDays(days)} are deleted daily`,
    body: [
      `Under your organization’s retention policy, messages older than ${formatDays(days)} are deleted every day. This is your monthly reminder.`,
      [
        ['Organization', organizationId],
        ['Retention period', formatDays(days)],
        ['Deleted within a month', `messages from before ${before}`],
      ],
      ...postponeInstructions(organizationId),
    ],
  }),

  'export-ready': ({ organizationId, exportId, keyId, keyName, sizeBytes, expiresAt }) => ({
    subject: `Your organization’s export is ready: ${exportId}`,
    body: [
      'An archive with all messages, files and settings of your organization has been created. It can be downloaded with the API key below or any other key that has the permission export:create.',
      [
        ['Organization', organizationId],
        ['Export', exportId],
        ['Requested by', keyName === null ? keyId : `${keyName} (${keyId})`],
        ['Size', `${sizeBytes.toLocaleString('en-US')} bytes`],
        ['Available until', expiresAt],
      ],
      `To download it: GET /api/v1/organizations/${organizationId}/exports/${exportId}, which returns a download link. To delete it early: DELETE on the same path.`,
      'If no one in your organization requested this export, revoke the key.',
    ],
  }),

  'organization-deleted': ({ organizationId, name, recoverableUntil, at, by, ip }) => ({
    subject: `Your organization was closed: ${name}`,
    body: [
      `The organization ${name} was closed by one of its owners. Its API keys do not work, its addresses accept no mail, and nothing is sent. On ${recoverableUntil} all of its data is deleted for good.`,
      [
        ['Organization', organizationId],
        ['Closed at', at],
        ['Closed by', by],
        ['From address', ip],
      ],
      RECOVER_ORGANIZATION,
    ],
  }),

  'organization-deletion-reminder': ({ organizationId, name, recoverableUntil }) => ({
    subject: `All data of ${name} is deleted on ${recoverableUntil}`,
    body: [
      `The organization ${name} is closed. On ${recoverableUntil} all of its messages, files and settings are deleted for good.`,
      [['Organization', organizationId]],
      RECOVER_ORGANIZATION,
      'If you want it to be deleted, you need not do anything.',
    ],
  }),

  'organization-recovered': ({ organizationId, name, at, by, ip }) => ({
    subject: `Your organization was recovered: ${name}`,
    body: [
      `The organization ${name} is open again. Mail that waited is sent now; scheduled mail whose time has passed, too.`,
      [
        ['Organization', organizationId],
        ['Recovered at', at],
        ['Recovered by', by],
        ['From address', ip],
      ],
    ],
  }),

  'usage-warning': (params) => ({
    subject: `${params.percentage}% of your ${params.counter} limit used`,
    body: [
      usageSentence(params),
      usageTable(params),
      params.kind === 'hard' ? `At 100%: ${HARD_LIMIT_EFFECT[params.counter]}` : softLimitEffect(params),
      LIMITS_ADVICE,
    ],
  }),

  'usage-exceeded': (params) => ({
    subject: `${params.counter} limit reached`,
    body: [
      usageSentence(params),
      usageTable(params),
      params.kind === 'hard' ? HARD_LIMIT_EFFECT[params.counter] : softLimitEffect(params),
      LIMITS_ADVICE,
    ],
  }),
};

const REFUSED_ACTS: Record<OrganizationAct, string> = {
  send: 'A planned message',
  approval: 'An approved message',
  invitation: 'An invitation',
  sso_setup_link: 'The set-up of single sign-on',
  export: 'An export',
  webhook_job: 'A job for a webhook endpoint',
  upgrade_request: 'A request for another tier',
};

const HARD_LIMIT_EFFECT: Record<UsageCounter, string> = {
  messages_sent:
    'No more messages are sent until the month ends or the limit is raised. Your drafts are kept.',
  messages_received:
    'Incoming mail is deferred. Sending servers usually retry for about 5 days, then return the message as undeliverable.',
  storage_bytes:
    'New files are rejected in uploads, drafts and messages until existing ones are deleted or the limit is raised.',
  api_calls: 'API calls are rejected, except those that read usage or read and change limits.',
  webhook_deliveries: 'Webhook deliveries are held, and sent when the month ends or the limit is raised.',
};
const softLimitEffect = ({ isBilled = false }: UsageAlertParams): string =>
  `This is a soft limit: nothing is rejected${isBilled ? ', and what is used beyond it is billed with your next invoice' : ''}.`;
const LIMITS_ADVICE =
  'To see your usage: GET /api/v1/org/usage. To see your limits and set your own: GET and PUT /api/v1/org/limits.';

/** Names the month, because a threshold that is crossed in its last minutes is reported in the next month. */
function usageSentence({ percentage, counter, resetsAt }: UsageAlertParams): string {
  const month = resetsAt && ` for ${new Date(Date.parse(resetsAt) - 1).toISOString().slice(0, 7)}`;
  return `Your organization has used ${percentage}% of its ${counter} limit${month ?? ''}.`;
}

function usageTable({
  organizationId,
  counter,
  current,
  limit,
  resetsAt,
}: UsageAlertParams): [string, string][] {
  return [
    ['Organization', organizationId],
    ['Counter', counter],
    ['Used', String(current)],
    ['Limit', String(limit)],
    ...(resetsAt === null ? [] : [['Resets on', resetsAt] as [string, string]]),
  ];
}

/** The page lists closed organizations. */
const RECOVER_ORGANIZATION: EmailContent['body'][number] = {
  label: 'Sign in to recover it',
  path: '/account',
};

const formatDays = (days: number): string => (days === 1 ? '1 day' : `${days} days`);

function postponeInstructions(organizationId: string): string[] {
  return [
    `To keep a copy, export your data first: GET /api/v1/organizations/${organizationId}/export.`,
    `To postpone deletion: POST /api/v1/organizations/${organizationId}/retention-policy/postpone with {"days": 14} (1 to 90). To keep messages longer: PUT /api/v1/organizations/${organizationId}/retention-policy with {"retention_days": 0} (forever) or a larger number; this takes effect immediately.`,
  ];
}

export function renderTemplate<Name extends TemplateName>(
  template: Name,
  params: TemplateParams[Name],
): EmailContent {
  return TEMPLATES[template](params);
}

function formatHost(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url.slice(0, 100);
}
