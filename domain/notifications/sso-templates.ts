import type { EmailContent } from './render-email.ts';

/** Parameters of the emails about single sign-on. */
export interface SsoTemplateParams {
  'sso-linked': { organizationName: string; at: string; ip: string };
  'sso-activated': {
    organizationId: string;
    configurationId: string;
    name: string;
    issuer: string;
    at: string;
    ip: string;
  };
  'sso-break-glass': { organizationId: string; userId: string; at: string; ip: string };
  'sso-setup-link': {
    organizationName: string;
    /** Null if an API key created the link. */
    inviterEmail: string | null;
    /** Formatted. */
    expiresAt: string;
    token: string;
  };
  'sso-setup-tested': {
    organizationId: string;
    configurationId: string;
    name: string;
    issuer: string;
    /** Separated by commas. */
    domains: string;
    defaultRole: string;
  };
  'sso-certificate-ends': {
    organizationId: string;
    configurationId: string;
    name: string;
    /** Formatted. */
    endsAt: string;
  };
}

export const SSO_TEMPLATES: {
  [Name in keyof SsoTemplateParams]: (params: SsoTemplateParams[Name]) => EmailContent;
} = {
  'sso-linked': ({ organizationName, at, ip }) => ({
    subject: 'Your account was linked with single sign-on',
    body: [
      `From now on, the single sign-on of ${organizationName} signs in to your account.`,
      [
        ['Time', at],
        ['From address', ip],
      ],
      'If it was not you, reset your password, and ask the administrators of the organization to remove you.',
    ],
    footer:
      'You received this email because it concerns the security of your account. Replies to this address are not monitored.',
  }),
  'sso-activated': ({ organizationId, configurationId, name, issuer, at, ip }) => ({
    subject: 'Single sign-on was activated in your organization',
    body: [
      'From now on, this identity provider decides who signs in to the accounts that are linked with it.',
      [
        ['Organization', organizationId],
        ['Configuration', `${name} (${configurationId})`],
        ['Identity provider', issuer],
        ['Time', at],
        ['From address', ip],
      ],
      'If no administrator of yours did this, delete the configuration: DELETE /api/v1/org/sso/{id}.',
    ],
  }),
  'sso-break-glass': ({ organizationId, userId, at, ip }) => ({
    subject: 'An owner entered your organization without single sign-on',
    body: [
      'Your organization requires single sign-on. An owner may enter without it if the identity provider fails, and all owners are informed.',
      [
        ['Organization', organizationId],
        ['Owner', userId],
        ['Time', at],
        ['From address', ip],
      ],
      'If it was not one of you, remove this owner’s passkeys and sessions, and look at the audit log: GET /api/v1/org/audit-log.',
    ],
  }),
  'sso-setup-link': ({ organizationName, inviterEmail, expiresAt, token }) => ({
    subject: `Set up single sign-on for ${organizationName}`,
    body: [
      `${inviterEmail ?? 'An administrator'} asks you to set up single sign-on for ${organizationName}: to register this service at the identity provider, and to enter its settings on a page. You need no account.`,
      { label: 'Open the set-up page', path: `/sso-setup?token=${token}` },
      `The link works once, in one browser and for two hours after you have opened the page. It expires on ${expiresAt}.`,
      'If you do not know the organization, ignore this email.',
    ],
    footer:
      'You received this email because an administrator of the organization entered your address. Replies to this address are not monitored.',
  }),
  'sso-setup-tested': ({ organizationId, configurationId, name, issuer, domains, defaultRole }) => ({
    subject: 'Single sign-on is ready to activate in your organization',
    body: [
      'The person who got your set-up link has configured single sign-on, and a test has passed. Nothing has changed for your members. Check that the identity provider is yours before you activate it: it will decide who gets in.',
      [
        ['Organization', organizationId],
        ['Configuration', `${name} (${configurationId})`],
        ['Identity provider', issuer],
        ['Domains', domains],
        ['Role of new members', defaultRole],
      ],
      { label: 'Review and activate it', path: `/settings/single-sign-on?org=${organizationId}` },
    ],
    footer:
      'You received this email because you are an owner of the organization, or created the set-up link. Replies to this address are not monitored.',
  }),
  'sso-certificate-ends': ({ organizationId, configurationId, name, endsAt }) => ({
    subject: `The certificate of your identity provider ends on ${endsAt}`,
    body: [
      'When the last certificate of your identity provider has ended, sign-ins through it fail.',
      [
        ['Organization', organizationId],
        ['Configuration', `${name} (${configurationId})`],
        ['Ends on', endsAt],
      ],
      `Add its next certificate: PATCH /api/v1/org/sso/${configurationId} with the new idp_metadata_xml, then test and activate the draft. If the configuration has an idp_metadata_url, the certificate is read from there as soon as the identity provider publishes it.`,
    ],
  }),
};
