import type { EmailContent } from './render-email.ts';

/** Parameters of the emails about a person's own account. Tokens are secrets. Links lead to pages of this service. */
export interface AccountTemplateParams {
  'verify-email': { token: string };
  'account-exists': Record<string, never>;
  'reset-password': { token: string };
  'password-changed': SecurityEventParams;
  'confirm-new-email': { token: string };
  'email-changed': SecurityEventParams & { newEmail: string };
  'mfa-added': SecurityEventParams & { name: string };
  'mfa-removed': SecurityEventParams & { name: string };
  'passkey-copied': SecurityEventParams & { name: string };
  'oauth-linked': SecurityEventParams & { provider: string };
  'oauth-unlinked': SecurityEventParams & { provider: string };
  'recovery-codes-replaced': SecurityEventParams & { name: string };
  'recovery-code-used': SecurityEventParams;
  'mfa-failed': SecurityEventParams;
  invitation: {
    token: string;
    organizationName: string;
    role: string;
    /** Null if an API key created the invitation. */
    inviterEmail: string | null;
    expiresAt: string;
  };
  'account-deleted': SecurityEventParams & {
    /** Formatted. */
    recoverableUntil: string;
    /** Names of the organizations that were closed with the account. */
    organizations: string[];
    token: string;
  };
  'account-recoverable': { recoverableUntil: string; token: string };
  'account-deletion-reminder': { recoverableUntil: string; token: string };
  'account-recovered': SecurityEventParams;
}

interface SecurityEventParams {
  /** Formatted. */
  at: string;
  /** Address of the client that made the change. */
  ip: string;
}

export const ACCOUNT_TEMPLATES: {
  [Name in keyof AccountTemplateParams]: (params: AccountTemplateParams[Name]) => EmailContent;
} = {
  'verify-email': ({ token }) => ({
    subject: 'Confirm your email address',
    body: [
      'To finish signing up, confirm that this address is yours.',
      { label: 'Confirm my address', path: tokenPath('/verify-email', token) },
      'The link works once and for 24 hours. If you did not sign up, ignore this email: no account is created.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-exists': () => ({
    subject: 'You already have an account',
    body: [
      'You, or someone else, tried to use this address for an account, and it already has one.',
      { label: 'Sign in', path: '/login' },
      { label: 'I forgot my password', path: '/forgot-password' },
      'If it was not you, you need not do anything.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'reset-password': ({ token }) => ({
    subject: 'Reset your password',
    body: [
      'You can choose a new password.',
      { label: 'Choose a new password', path: tokenPath('/reset-password', token) },
      'The link works once and for one hour. If you did not ask for it, ignore this email: your password stays as it is.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'password-changed': (params) => ({
    subject: 'Your password was changed',
    body: [
      'The password of your account was changed. All other sessions were signed out, and programs that you had connected were disconnected.',
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'confirm-new-email': ({ token }) => ({
    subject: 'Confirm your new email address',
    body: [
      'You, or someone else, wants to use this address for an account.',
      { label: 'Confirm my new address', path: tokenPath('/change-email', token) },
      'The link works once and for 24 hours. If you did not ask for it, ignore this email.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'email-changed': ({ newEmail, ...params }) => ({
    subject: 'The email address of your account was changed',
    body: [
      `Your account now has the address ${newEmail}. This address can no longer sign in.`,
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'mfa-added': ({ name, ...params }) => ({
    subject: 'A second factor was added to your account',
    body: [`The second factor “${name}” was added to your account.`, ...eventTable(params)],
    footer: ACCOUNT_FOOTER,
  }),
  'mfa-removed': ({ name, ...params }) => ({
    subject: 'A second factor was removed from your account',
    body: [`The second factor “${name}” was removed from your account.`, ...eventTable(params)],
    footer: ACCOUNT_FOOTER,
  }),
  'passkey-copied': ({ name, ...params }) => ({
    subject: 'A sign-in with your passkey was refused',
    body: [
      `A sign-in with “${name}” was refused: its use counter was lower than before, so a second device may have a copy of it. Remove the passkey and register a new one, unless you know the reason.`,
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'oauth-linked': ({ provider, ...params }) => ({
    subject: `Your account was linked with ${provider}`,
    body: [
      `Signing in with your ${provider} account now signs in to your account here.`,
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'oauth-unlinked': ({ provider, ...params }) => ({
    subject: `Your account is no longer linked with ${provider}`,
    body: [`You can no longer sign in with ${provider}.`, ...eventTable(params)],
    footer: ACCOUNT_FOOTER,
  }),
  invitation: ({ token, organizationName, role, inviterEmail, expiresAt }) => ({
    subject: `Invitation to ${organizationName}`,
    body: [
      'You are invited to join an organization on this email service.',
      [
        ['Organization', organizationName],
        ['Role', role],
        ...(inviterEmail === null ? [] : [['Invited by', inviterEmail] as [string, string]]),
        ['Valid until', expiresAt],
      ],
      { label: 'Accept the invitation', path: tokenPath('/invitations/accept', token) },
      `Without a browser: POST /api/v1/invitations/accept with {"token": "${token}", "password": "…"}; if you have an account, with the token and your session instead of a password.`,
      'The link works once. If you do not know the organization, ignore this email: nothing happens.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'recovery-codes-replaced': (params) => ({
    subject: 'Your recovery codes were replaced',
    body: ['New recovery codes were created. The old ones no longer work.', ...eventTable(params)],
    footer: ACCOUNT_FOOTER,
  }),
  'mfa-failed': (params) => ({
    subject: 'Someone with your password failed at the second factor',
    body: [
      'A sign-in to your account had the right password, but several wrong codes. Further attempts are slowed down.',
      ...eventTable(params),
      { label: 'Change your password', path: '/account' },
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'recovery-code-used': (params) => ({
    subject: 'A recovery code was used to sign in',
    body: [
      'Someone signed in to your account with a recovery code instead of the second factor. The code no longer works.',
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-deleted': ({ recoverableUntil, organizations, token, ...params }) => ({
    subject: 'Your account was deleted',
    body: [
      `Your account was deleted, and all sessions were signed out. On ${recoverableUntil} your personal data is deleted for good.`,
      ...(organizations.length === 0
        ? []
        : [
            `Organizations of which you were the only member are closed, and are deleted with your account: ${organizations.join(', ')}. Their API keys do not work, and their addresses accept no mail.`,
          ]),
      ...recoverySteps(token),
      [
        ['Time', params.at],
        ['From address', params.ip],
      ],
      'If it was not you, recover the account and reset your password.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-recoverable': ({ recoverableUntil, token }) => ({
    subject: 'Your account was deleted and can be recovered',
    body: [
      `You, or someone else, tried to use this address for an account. It belongs to an account that was deleted, and can be recovered until ${recoverableUntil}.`,
      ...recoverySteps(token),
      'If it was not you, you need not do anything.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-deletion-reminder': ({ recoverableUntil, token }) => ({
    subject: `Your account is deleted for good on ${recoverableUntil}`,
    body: [
      `You have deleted your account. On ${recoverableUntil} your personal data, and the organizations that were closed with the account, are deleted for good.`,
      ...recoverySteps(token),
      'If you want it to be deleted, you need not do anything.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-recovered': ({ at, ip }) => ({
    subject: 'Your account was recovered',
    body: [
      'Your account, and the organizations that were closed with it, were recovered.',
      [
        ['Time', at],
        ['From address', ip],
      ],
      'If it was not you, reset your password and sign out all sessions.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
};

const recoverySteps = (token: string): EmailContent['body'] => [
  { label: 'Recover my account', path: tokenPath('/recover', token) },
  'The link works once. Your address and password work instead of it.',
];

const ACCOUNT_FOOTER =
  'You received this email because your address was given to this service. Replies to this address are not monitored.';

const tokenPath = (page: string, token: string): string => `${page}?${new URLSearchParams({ token })}`;

function eventTable({ at, ip }: SecurityEventParams): EmailContent['body'] {
  return [
    [
      ['Time', at],
      ['From address', ip],
    ],
    'If it was not you, reset your password and sign out all sessions.',
  ];
}
