import type { EmailContent } from './render-email.ts';

/**
 * Parameters of the emails to owners about changes that could weaken the security of their organization or transfer its
 * control.
 */
export interface OrganizationTemplateParams {
  'policies-weakened': OrganizationChangeParams & {
    policies: { policy: string; before: string; after: string }[];
  };
  'sso-stopped': OrganizationChangeParams & {
    configurationId: string;
    name: string;
    change: 'disabled' | 'deleted';
  };
  'owner-added': OrganizationChangeParams & { owner: string; how: 'role' | 'invitation' };
  'owner-removed': OrganizationChangeParams & { owner: string; role: string | null };
  'ownership-transferred': OrganizationChangeParams & { from: string; to: string };
  'staff-access': StaffAccessParams & {
    allowsWrite: boolean;
    /** Formatted. */
    at: string;
    /** Formatted. */
    until: string;
  };
  'staff-access-requested': StaffAccessParams;
}

interface StaffAccessParams {
  organizationId: string;
  organizationName: string;
  /** User id. */
  staffId: string;
  reason: string;
}

/** Who changed what, and when. */
export interface OrganizationChangeParams {
  organizationId: string;
  organizationName: string;
  /** Address of a person, or the id of a key. */
  by: string;
  /** Formatted. */
  at: string;
  ip: string;
}

export const ORGANIZATION_TEMPLATES: {
  [Name in keyof OrganizationTemplateParams]: (params: OrganizationTemplateParams[Name]) => EmailContent;
} = {
  'policies-weakened': ({ policies, ...params }) => ({
    subject: `Policies of ${params.organizationName} protect less than before`,
    body: [
      'Policies of your organization were changed, and now protect it less.',
      policies.map(({ policy, before, after }) => [policy, `${before} → ${after}`]),
      changeTable(params),
      'If you do not agree, change them back: PATCH /api/v1/org/policies. The audit log names every change: GET /api/v1/org/audit-log.',
    ],
  }),
  'sso-stopped': ({ configurationId, name, change, ...params }) => ({
    subject: `Single sign-on was ${change} in ${params.organizationName}`,
    body: [
      `A single sign-on configuration of your organization was ${change}. Members can no longer sign in through it.`,
      [['Configuration', `${name} (${configurationId})`]],
      changeTable(params),
      'If no administrator of yours was meant to do this, remove that person’s access, and set it up again: POST /api/v1/org/sso.',
    ],
  }),
  'owner-added': ({ owner, how, ...params }) => ({
    subject: `${params.organizationName} has another owner`,
    body: [
      how === 'invitation'
        ? 'An invitation to become an owner of your organization was accepted. Owners can change and close everything.'
        : 'A member became an owner of your organization. Owners can change and close everything.',
      [['New owner', owner]],
      changeTable(params),
      'If you do not agree: PATCH /api/v1/org/members/{user_id} with a lower role.',
    ],
  }),
  'owner-removed': ({ owner, role, ...params }) => ({
    subject: `${params.organizationName} has one owner less`,
    body: [
      role === null
        ? 'An owner of the organization was removed from it.'
        : `An owner of the organization now has the role ${role}.`,
      [['Former owner', owner]],
      changeTable(params),
      'If you did not expect this, contact the other owners, or the operator of this service.',
    ],
    footer: OWNER_FOOTER,
  }),
  'ownership-transferred': ({ from, to, ...params }) => ({
    subject: `The owner of ${params.organizationName} has changed`,
    body: [
      `The organization ${params.organizationName} was handed over. The former owner is now an administrator.`,
      [
        ['Former owner', from],
        ['New owner', to],
      ],
      changeTable(params),
      'If you did not expect this, contact the other person and the operator of this service.',
    ],
    footer: OWNER_FOOTER,
  }),
  'staff-access': ({ organizationId, organizationName, staffId, reason, allowsWrite, at, until }) => ({
    subject: `Support has opened ${organizationName}`,
    body: [
      allowsWrite
        ? 'A staff member of this service sees your organization as you do, and may change mail and settings in it. They cannot send mail, change members, keys, policies or single sign-on, approve messages, or export data.'
        : 'A staff member of this service sees your organization as you do, for reading.',
      [
        ['Organization', organizationId],
        ['Staff member', staffId],
        ['Reason', reason],
        ['From', at],
        ['Until', until],
      ],
      'When they leave, the audit log says what they looked at: GET /api/v1/org/audit-log?action=impersonation.ended. To be asked before: PATCH /api/v1/org/policies with {"support_access": "ask"}, which also ends this access.',
    ],
  }),
  'staff-access-requested': ({ organizationId, organizationName, staffId, reason }) => ({
    subject: `Support asks to open ${organizationName}`,
    body: [
      'A staff member of this service would like to see your organization as you do. They see nothing until you agree.',
      [
        ['Organization', organizationId],
        ['Staff member', staffId],
        ['Reason', reason],
      ],
      'To agree, say until when: PATCH /api/v1/org/policies with {"support_access_until": "2026-12-31T12:00:00Z"}. To withdraw it: {"support_access_until": null}. If you do not agree, you need not do anything.',
    ],
  }),
};

const OWNER_FOOTER =
  'You received this email because you are, or were, an owner of the organization. Replies to this address are not monitored.';

const changeTable = ({ organizationId, by, at, ip }: OrganizationChangeParams): [string, string][] => [
  ['Organization', organizationId],
  ['Changed by', by],
  ['Time', at],
  ['From address', ip],
];
