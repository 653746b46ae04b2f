import type { EmailContent } from './render-email.ts';

interface OverduePaymentParams {
  organizationId: string;
  /** Formatted. */
  suspendAt: string;
  /** Formatted; null if Stripe does not try again. */
  nextAttemptAt: string | null;
}

/** Parameters of the emails about the organization's subscription. */
export interface BillingTemplateParams {
  'payment-failed': OverduePaymentParams;
  'payment-reminder': OverduePaymentParams;
  'payment-action-required': {
    organizationId: string;
    /** Stripe's page of the invoice. */
    invoiceUrl: string;
  };
  'payment-recovered': { organizationId: string };
  'subscription-ended': { organizationId: string; tier: string };
}

/** The billing page says the same. */
export const EFFECT_OF_SUSPENSION =
  'On that day the organization is suspended: nothing is sent and nothing can be changed. Incoming mail is still stored, and you can read and export everything. It is reinstated by itself as soon as the payment arrives.';

export const BILLING_TEMPLATES: {
  [Name in keyof BillingTemplateParams]: (params: BillingTemplateParams[Name]) => EmailContent;
} = {
  'payment-failed': (params) => ({
    subject: 'The payment for your organization failed',
    body: [
      'The last payment for your subscription failed. Nothing changes for now.',
      overdueTable(params),
      EFFECT_OF_SUSPENSION,
      billingPage('Pay or change the payment method', params.organizationId),
    ],
  }),
  'payment-reminder': (params) => ({
    subject: `Your organization will be suspended on ${params.suspendAt} unless its invoice is paid`,
    body: [
      'The payment for your subscription is still overdue.',
      overdueTable(params),
      EFFECT_OF_SUSPENSION,
      billingPage('Pay or change the payment method', params.organizationId),
    ],
  }),
  'payment-action-required': ({ organizationId, invoiceUrl }) => ({
    subject: 'Your bank asks you to confirm a payment',
    body: [
      'Your bank wants you to confirm the payment for your subscription. Until you do, it counts as not paid.',
      [
        ['Organization', organizationId],
        ['Confirm on', invoiceUrl],
      ],
      billingPage('See your subscription', organizationId),
    ],
  }),
  'payment-recovered': ({ organizationId }) => ({
    subject: 'The payment for your organization arrived',
    body: [
      'The overdue payment for your subscription arrived. The organization is not suspended.',
      [['Organization', organizationId]],
    ],
  }),
  'subscription-ended': ({ organizationId, tier }) => ({
    subject: 'Your subscription has ended',
    body: [
      `Your subscription has ended, and your organization has the tier ${tier} now. Its limits apply from now on; nothing is deleted.`,
      [
        ['Organization', organizationId],
        ['Tier', tier],
      ],
      billingPage('Start a new subscription', organizationId),
    ],
  }),
};

function overdueTable({
  organizationId,
  suspendAt,
  nextAttemptAt,
}: OverduePaymentParams): [string, string][] {
  return [
    ['Organization', organizationId],
    ['Next attempt to collect it', nextAttemptAt ?? 'none'],
    ['Suspension on', suspendAt],
  ];
}

const billingPage = (label: string, organizationId: string) => ({
  label,
  path: `/billing?org=${organizationId}`,
});
