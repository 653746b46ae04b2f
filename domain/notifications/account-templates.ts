import type { EmailContent } from './email-content.ts';

/** Parameters of the emails about a person's own account. Links are secrets: they carry a token. */
export interface AccountTemplateParams {
  'verify-email': { link: string };
  'account-exists': { link: string };
  'reset-password': { link: string };
  'password-changed': SecurityEventParams;
  'confirm-new-email': { link: string };
  'email-changed': SecurityEventParams & { newEmail: string };
  'account-deleted': SecurityEventParams & { link: string; recoverableUntil: string };
  'account-recovered': SecurityEventParams;
  'mfa-added': SecurityEventParams & { name: string };
  'mfa-removed': SecurityEventParams & { name: string };
  'recovery-codes-replaced': SecurityEventParams & { name: string };
  'recovery-code-used': SecurityEventParams;
}

interface SecurityEventParams {
  /** Formatted. */
  at: string;
  /** Client address that made the change. */
  ip: string;
}

export const ACCOUNT_TEMPLATES: {
  [Name in keyof AccountTemplateParams]: (params: AccountTemplateParams[Name]) => EmailContent;
} = {
  'verify-email': ({ link }) => ({
    subject: 'Confirm your email address',
    body: [
      'To finish signing up, open this link in the browser you signed up with, or enter your password when asked:',
      link,
      'The link works once and for 24 hours. If you did not sign up, ignore this email: no account is created.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-exists': ({ link }) => ({
    subject: 'You already have an account',
    body: [
      'You, or someone else, tried to sign up with this address, which already has an account. Sign in here:',
      link,
      'If you have forgotten your password, you can reset it there. If it was not you, you need not do anything.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'reset-password': ({ link }) => ({
    subject: 'Reset your password',
    body: [
      'To choose a new password, open this link:',
      link,
      'The link works once and for one hour. If you did not ask for it, ignore this email: your password stays as it is.',
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'password-changed': (params) => ({
    subject: 'Your password was changed',
    body: [
      'The password of your account was changed. All other sessions were signed out.',
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'confirm-new-email': ({ link }) => ({
    subject: 'Confirm your new email address',
    body: [
      'To use this address for your account, open this link:',
      link,
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
  'account-deleted': ({ link, recoverableUntil, ...params }) => ({
    subject: 'Your account was deleted',
    body: [
      `Your account was deleted and all its sessions were signed out. Until ${recoverableUntil} you can recover it here:`,
      link,
      ...eventTable(params),
    ],
    footer: ACCOUNT_FOOTER,
  }),
  'account-recovered': (params) => ({
    subject: 'Your account was recovered',
    body: ['Your account is active again.', ...eventTable(params)],
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
  'recovery-codes-replaced': (params) => ({
    subject: 'Your recovery codes were replaced',
    body: ['New recovery codes were created. The old ones no longer work.', ...eventTable(params)],
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
};

const ACCOUNT_FOOTER =
  'You received this email because your address was given to this service. Replies to this address are not monitored.';

function eventTable({ at, ip }: SecurityEventParams): EmailContent['body'] {
  return [
    [
      ['Time', at],
      ['From address', ip],
    ],
    'If it was not you, reset your password and sign out all sessions.',
  ];
}
