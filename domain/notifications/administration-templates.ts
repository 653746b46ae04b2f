import type { EmailContent } from './render-email.ts';

export type SuspendedResourceType = 'organization' | 'environment' | 'inbox';
type Reason = 'payment' | 'abuse' | 'support' | 'policy';

interface SuspensionParams {
  organizationId: string;
  targetType: SuspendedResourceType;
  targetId: string;
  /** Name of the organization or environment, address of the inbox. */
  targetName: string;
  reason: Reason;
  /** Formatted. */
  at: string;
}

interface UpgradeDecisionParams {
  organizationId: string;
  requestId: string;
  tier: string;
  /** Text written by the administrator. */
  note: string;
}

/** Parameters of the emails about decisions of the service's administrators. */
export interface AdministrationTemplateParams {
  suspended: SuspensionParams;
  reinstated: SuspensionParams;
  'upgrade-approved': UpgradeDecisionParams;
  'upgrade-payable': UpgradeDecisionParams;
  'upgrade-rejected': UpgradeDecisionParams;
  'owner-reassigned': {
    organizationId: string;
    organizationName: string;
    newOwner: string;
    /** Formatted. */
    at: string;
  };
}

/** Follows “was suspended”. */
export const SUSPENSION_CAUSES: Record<Reason, string> = {
  payment: 'because a payment is overdue',
  abuse: 'because of a report of abuse',
  support: 'while support works on it',
  policy: 'because its use does not follow the rules of the service',
};

export const ADMINISTRATION_TEMPLATES: {
  [Name in keyof AdministrationTemplateParams]: (params: AdministrationTemplateParams[Name]) => EmailContent;
} = {
  suspended: (params) => ({
    subject: `Your ${params.targetType} ${params.targetName} is suspended`,
    body: [
      `The ${params.targetType} ${params.targetName} was suspended ${SUSPENSION_CAUSES[params.reason]}.`,
      suspensionTable(params),
      'Until it is reinstated, nothing is sent and nothing can be changed. You can read and export everything, and incoming mail is still stored. Webhook deliveries wait.',
      params.reason === 'abuse'
        ? 'Messages that were accepted but had not left are rejected, and so are scheduled drafts that come due.'
        : 'Messages that were accepted but have not left, and scheduled drafts that come due, wait and leave after reinstatement.',
      params.reason === 'payment'
        ? { label: 'Pay the open invoice', path: `/billing?org=${params.organizationId}` }
        : 'Contact the support of your service. The audit log of your organization says more.',
      ...(params.reason === 'payment' ? ['It is reinstated by itself as soon as the payment arrives.'] : []),
    ],
  }),
  reinstated: (params) => ({
    subject: `Your ${params.targetType} ${params.targetName} is active again`,
    body: [
      `The ${params.targetType} ${params.targetName} was reinstated. It can send and be changed again; messages, scheduled drafts and webhook deliveries that waited leave now.`,
      suspensionTable(params),
    ],
  }),
  'upgrade-approved': (params) => ({
    subject: `Your organization now has the tier ${params.tier}`,
    body: [
      'Your request for another tier was approved. Its limits apply from now on.',
      upgradeTable(params),
      'To see your limits: GET /api/v1/org/limits.',
    ],
  }),
  'upgrade-payable': (params) => ({
    subject: `Your request for the tier ${params.tier} was approved`,
    body: [
      'Your request for another tier was approved. It takes effect with its payment.',
      upgradeTable(params),
      { label: 'Continue to the payment', path: `/billing?org=${params.organizationId}` },
    ],
  }),
  'upgrade-rejected': (params) => ({
    subject: `Your request for the tier ${params.tier} was not approved`,
    body: [
      'Your request for another tier was not approved. Your limits stay as they are.',
      upgradeTable(params),
      'You can make another request: POST /api/v1/org/upgrade-requests.',
    ],
  }),
  'owner-reassigned': ({ organizationId, organizationName, newOwner, at }) => ({
    subject: `${organizationName} has a new owner`,
    body: [
      `Support of the service made ${newOwner} the owner of the organization ${organizationName}. Its former owners are administrators now.`,
      [
        ['Organization', organizationId],
        ['New owner', newOwner],
        ['Time', at],
      ],
      'The audit log of the organization has the reason. If you did not expect this, contact the support of your service.',
    ],
  }),
};

function suspensionTable({ organizationId, targetType, targetId, reason, at }: SuspensionParams) {
  const target: [string, string][] = targetType === 'organization' ? [] : [[titleOf(targetType), targetId]];
  const rows: [string, string][] = [
    ['Organization', organizationId],
    ...target,
    ['Reason', reason],
    ['Time', at],
  ];
  return rows;
}

function upgradeTable({ organizationId, requestId, tier, note }: UpgradeDecisionParams) {
  const rows: [string, string][] = [
    ['Organization', organizationId],
    ['Request', requestId],
    ['Tier', tier],
    ['Note', note],
  ];
  return rows;
}

const titleOf = (type: SuspendedResourceType): string => (type === 'inbox' ? 'Inbox' : 'Environment');
