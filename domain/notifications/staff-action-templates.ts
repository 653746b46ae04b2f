import type { EmailContent } from './render-email.ts';

/** Parameters of the emails about staff actions on an account or key. The reason is only in the logs. */
export interface StaffActionTemplateParams {
  'account-suspended': { at: string };
  'account-reinstated': { at: string };
  'sessions-ended-by-staff': { at: string };
  'mfa-reset-by-staff': { at: string };
  'staff-role-changed': {
    at: string;
    /** Null if the person is no longer staff. */
    role: string | null;
  };
  /** Plain text by staff; an empty line separates paragraphs. */
  announcement: { title: string; text: string };
  'api-key-revoked-by-staff': {
    organizationId: string;
    keyId: string;
    keyName: string;
    lastFour: string;
    at: string;
  };
}

const CONTACT = 'If you have questions, contact the support of your service.';
const when = (at: string): [string, string][] => [['Time', at]];

export const STAFF_ACTION_TEMPLATES: {
  [Name in keyof StaffActionTemplateParams]: (params: StaffActionTemplateParams[Name]) => EmailContent;
} = {
  'account-suspended': ({ at }) => ({
    subject: 'Your account was suspended',
    body: [
      'Support of the service suspended your account. You cannot sign in, and your sessions have ended. The organizations that you belong to, and their API keys, keep working.',
      when(at),
      CONTACT,
    ],
  }),
  'account-reinstated': ({ at }) => ({
    subject: 'Your account is active again',
    body: [
      'Support of the service reinstated your account. You can sign in again.',
      when(at),
      { label: 'Sign in', path: '/login' },
    ],
  }),
  'sessions-ended-by-staff': ({ at }) => ({
    subject: 'You were signed out everywhere',
    body: [
      'Support of the service ended all sessions of your account, and disconnected the programs that you had connected. You can sign in again.',
      when(at),
      { label: 'Sign in', path: '/login' },
      CONTACT,
    ],
  }),
  'mfa-reset-by-staff': ({ at }) => ({
    subject: 'The second factors of your account were removed',
    body: [
      'Support of the service removed all second factors, passkeys and recovery codes of your account, and ended its sessions. Sign in with your password, and enroll a new factor.',
      when(at),
      { label: 'Sign in', path: '/login' },
      'If you did not ask for this, change your password and contact the support of your service at once.',
    ],
  }),
  'staff-role-changed': ({ at, role }) => ({
    subject: role === null ? 'You are no longer staff of the service' : `You are ${role} of the service`,
    body: [
      role === null
        ? 'Your role as staff of the service was taken away. Your account stays.'
        : `You now have the staff role ${role}. It requires a second factor.`,
      when(at),
    ],
  }),
  announcement: ({ title, text }) => ({
    subject: title,
    body: text
      .split(/\n{2,}/)
      .map((paragraph) => paragraph.trim())
      .filter((paragraph) => paragraph !== ''),
  }),
  'api-key-revoked-by-staff': ({ organizationId, keyId, keyName, lastFour, at }) => ({
    subject: `API key ${keyId} was revoked`,
    body: [
      'Support of the service revoked an API key of your organization. Requests with it are refused.',
      [['Organization', organizationId], ['Key', `${keyName} (${keyId}, ends in ${lastFour})`], ...when(at)],
      'To replace it: POST /api/v1/api-keys. The audit log of your organization has the reason.',
    ],
  }),
};
