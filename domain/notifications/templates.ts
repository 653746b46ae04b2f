import type { UsageCounter } from '../usage/counters.ts';
import type { LimitKind } from '../usage/tiers.ts';

/** What each template is filled with. Plain text throughout: rendering escapes it. */
export interface TemplateParams {
  'webhook-endpoint-disabled': {
    endpointId: string;
    environmentId: string;
    url: string;
    reason: string;
    /** As people read it; null where attempts succeeded until then. */
    failingSince: string | null;
  };
  'export-ready': {
    organizationId: string;
    exportId: string;
    keyId: string;
    /** Null where the key is gone. */
    keyName: string | null;
    sizeBytes: number;
    expiresAt: string;
  };
  'retention-set': RetentionWarning;
  'retention-tomorrow': RetentionWarning;
  'retention-reminder': {
    organizationId: string;
    days: number;
    /** What is older goes within the month; as people read it. */
    before: string;
  };
  'usage-warning': UsageNotice;
  'usage-exceeded': UsageNotice;
}

interface UsageNotice {
  organizationId: string;
  counter: UsageCounter;
  current: number;
  limit: number;
  percentage: number;
  kind: LimitKind;
  /** The day the counter starts anew; null where it does not. */
  resetsAt: string | null;
}

interface RetentionWarning {
  organizationId: string;
  days: number;
  /** As people read it. */
  firstDeletionAt: string;
}

export type TemplateName = keyof TemplateParams;

/** A mail as it is told, whatever it is rendered to. */
export interface Letter {
  subject: string;
  /** A text is a paragraph; a list of pairs says things by name. */
  body: (string | [name: string, value: string][])[];
}

const TEMPLATES: { [Name in TemplateName]: (params: TemplateParams[Name]) => Letter } = {
  'webhook-endpoint-disabled': ({ endpointId, environmentId, url, reason, failingSince }) => ({
    subject: `Webhook endpoint disabled: ${hostOf(url)}`,
    body: [
      'One of your webhook endpoints was disabled. Its events are kept, and none is delivered until it is enabled again.',
      [
        ['Endpoint', endpointId],
        ['Environment', environmentId],
        ['URL', url],
        ['Reason', reason],
        ...(failingSince === null ? [] : [['Failing since', failingSince] as [string, string]]),
      ],
      `When the receiver works again, enable the endpoint: PATCH /api/v1/webhooks/endpoints/${endpointId} with {"disabled": false}. What waited is delivered then, oldest first.`,
    ],
  }),
  'retention-set': ({ organizationId, days, firstDeletionAt }) => ({
    subject: `Mail older than ${daysOf(days)} will be deleted, from ${firstDeletionAt} on`,
    body: [
      `The retention policy of your organization was changed: messages older than ${daysOf(days)} will be deleted, with their attachments, for good. Until then everything stays as it was.`,
      [
        ['Organization', organizationId],
        ['Mail is kept for', daysOf(days)],
        ['First deletion', `${firstDeletionAt}, with the daily run after it`],
      ],
      ...waysOut(organizationId),
    ],
  }),

  'retention-tomorrow': ({ organizationId, days, firstDeletionAt }) => ({
    subject: `Tomorrow mail older than ${daysOf(days)} is deleted`,
    body: [
      `By the retention policy of your organization messages older than ${daysOf(days)} are about to be deleted, with their attachments, for good.`,
      [
        ['Organization', organizationId],
        ['Mail is kept for', daysOf(days)],
        ['Deletion begins', firstDeletionAt],
      ],
      ...waysOut(organizationId),
    ],
  }),

  'retention-reminder': ({ organizationId, days, before }) => ({
    subject: `Reminder: mail older than ${daysOf(days)} is deleted every day`,
    body: [
      `By the retention policy of your organization messages older than ${daysOf(days)} are deleted every day. This is the reminder of the month.`,
      [
        ['Organization', organizationId],
        ['Mail is kept for', daysOf(days)],
        ['Gone within a month', `mail of before ${before}`],
      ],
      ...waysOut(organizationId),
    ],
  }),

  'export-ready': ({ organizationId, exportId, keyId, keyName, sizeBytes, expiresAt }) => ({
    subject: `An export of your organization is ready: ${exportId}`,
    body: [
      'An archive of all mail, files and settings of your organization was made. Whoever has the key below, or another one that may export, can download it.',
      [
        ['Organization', organizationId],
        ['Export', exportId],
        ['Asked for by', keyName === null ? keyId : `${keyName} (${keyId})`],
        ['Size', `${sizeBytes.toLocaleString('en-US')} bytes`],
        ['Offered until', expiresAt],
      ],
      `To download it: GET /api/v1/organizations/${organizationId}/exports/${exportId}, which answers with a link. To take it away before its time: DELETE at the same path.`,
      'If nobody of you asked for it, revoke the key.',
    ],
  }),

  'usage-warning': (notice) => ({
    subject: `${notice.percentage} % of ${notice.counter} are used`,
    body: [
      usageSentence(notice),
      usageFacts(notice),
      notice.kind === 'hard' ? `At 100 %: ${AT_THE_LIMIT[notice.counter]}` : NOTHING_IS_REFUSED,
      LIMITS_ADVICE,
    ],
  }),

  'usage-exceeded': (notice) => ({
    subject: `The limit of ${notice.counter} is reached`,
    body: [
      usageSentence(notice),
      usageFacts(notice),
      notice.kind === 'hard' ? AT_THE_LIMIT[notice.counter] : NOTHING_IS_REFUSED,
      LIMITS_ADVICE,
    ],
  }),
};

/** What a hard limit does. */
const AT_THE_LIMIT: Record<UsageCounter, string> = {
  messages_sent: 'Nothing more is sent until the month is over or the limit is raised; drafts stay.',
  messages_received:
    'Mail for you is put off. The servers of its senders try again for about 5 days, then it goes back to them as undeliverable.',
  storage_bytes: 'No further files are taken with uploads, drafts and messages until some are deleted.',
  api_calls: 'Calls of the API are refused, but for those that read what was used and change limits.',
  webhook_deliveries: 'Webhook deliveries wait, and go out when the month is over or the limit is raised.',
};
const NOTHING_IS_REFUSED = 'The limit is soft: nothing is refused for it.';
const LIMITS_ADVICE =
  'What was used: GET /api/v1/org/usage. Limits, and caps of your own: GET and PUT /api/v1/org/limits.';

/** The month by its name: what was reached in its last minutes is told in the next one. */
function usageSentence({ percentage, counter, resetsAt }: UsageNotice): string {
  const month = resetsAt && ` in ${new Date(Date.parse(resetsAt) - 1).toISOString().slice(0, 7)}`;
  return `Your organization has used ${percentage} % of what it may have of ${counter}${month ?? ''}.`;
}

function usageFacts({ organizationId, counter, current, limit, resetsAt }: UsageNotice): [string, string][] {
  return [
    ['Organization', organizationId],
    ['Counter', counter],
    ['Used', String(current)],
    ['Limit', String(limit)],
    ...(resetsAt === null ? [] : [['Starts anew', resetsAt] as [string, string]]),
  ];
}

const daysOf = (days: number): string => (days === 1 ? '1 day' : `${days} days`);

function waysOut(organizationId: string): string[] {
  const path = `/api/v1/organizations/${organizationId}`;
  return [
    `To keep a copy, export everything first: GET ${path}/export.`,
    `To put the deletion off: POST ${path}/retention-policy/postpone with {"days": 14} (1 to 90). To keep mail longer: PUT ${path}/retention-policy with {"retention_days": 0} (for ever) or another number; it holds at once.`,
  ];
}

export function writeLetter<Name extends TemplateName>(template: Name, params: TemplateParams[Name]): Letter {
  return TEMPLATES[template](params);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url.slice(0, 100);
}
