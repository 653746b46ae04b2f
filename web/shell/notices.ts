import type { OAUTH_NOTICES } from '../../api/oauth/oauth-failures.ts';
import type { Signer } from '../../platform/crypto.ts';

/** What a page says after a form was accepted. Links carry only the key, so that they cannot put words on a page. */
export const NOTICES = {
  'sign-in-again': 'Sign in again to continue.',
  'link-account':
    'An account has your address. Sign in to it once, and it will be linked with your single sign-on.',
  'signed-out': 'You are signed out.',
  'check-mail': 'Check your mailbox: we have sent you an email with a link.',
  'password-reset': 'Your password is changed. Sign in with it.',
  'email-changed': 'Your email address is changed. Sign in with it.',
  'account-deleted':
    'Your account is deleted. We have sent you an email with a link to recover it within 30 days.',
  'account-recoverable':
    'Your account was deleted, and can be recovered by the link that we have mailed, or by address and password. “I forgot my password” mails another link.',
  'account-recovered': 'Your account is recovered.',
  'organization-closed': 'The organization is closed. You can recover it for 30 days.',
  'organization-recovered': 'The organization is open again.',
  'impersonation-ended': 'The impersonation has ended.',
  saved: 'Saved.',
  'inbox-created': 'The inbox is created. It can send and receive now.',
  'inbox-paused': 'Sending is paused. The inbox still receives.',
  'inbox-resumed': 'The inbox sends again.',
  'inbox-deleted': 'The inbox is deleted.',
  'message-queued': 'The message is on its way.',
  'message-scheduled': 'The message is scheduled.',
  'message-waits': 'The message waits for an approval.',
  'draft-saved': 'The draft is saved.',
  'password-changed':
    'Your password is changed. Your other sessions are signed out, and connected programs are disconnected.',
  'factor-removed': 'The second factor is removed.',
  'passkey-added': 'The passkey is added. You can sign in with it.',
  'provider-failed': 'The sign-in with the provider failed, was cancelled or took too long. Try again.',
  'provider-unavailable': 'The provider does not respond. Try again later, or sign in another way.',
  'account-exists':
    'Your address already has an account here. Sign in to it as before, and then link the provider on your account page.',
  'provider-without-address':
    'The provider does not prove your email address. Sign up with your address, and then link the provider on your account page.',
  'provider-linked-elsewhere': 'That account of the provider is linked with another account here.',
  'other-identity-linked': 'Another account of the provider is linked with yours. Unlink it first.',
  'provider-linked': 'The provider is linked. You can sign in with it.',
  'provider-unlinked': 'The provider is unlinked.',
  'session-ended': 'The session is signed out.',
  'sessions-ended': 'All other sessions are signed out, and connected programs are disconnected.',
  'member-changed': 'The role is changed. With a lower one, their API keys have lost what it lacks.',
  'member-removed': 'The member is removed, and their API keys and invitations are revoked.',
  'member-removed-without-keys':
    'The member is removed. Their API keys still work: rotate them, because the person may know them.',
  'organization-left': 'You have left the organization.',
  'organization-created': 'The organization is created. You are its owner.',
  'owner-changed': 'The organization has a new owner. You are an administrator.',
  invited: 'The invitation is on its way.',
  'invitation-revoked': 'The invitation is revoked.',
  'setup-link-sent': 'The set-up link is on its way.',
  'limits-changed': 'The limits are changed.',
  'upgrade-requested': 'You have asked for another plan. The answer comes by email.',
  'key-changed': 'The API key is changed. Its next call has the new permissions.',
  'key-revoked': 'The API key is revoked.',
  'connection-ended': 'The connection is ended. The program can do nothing more here.',
  done: 'Done. The change is in the log below.',
  'payment-under-way':
    'Thank you. The plan changes as soon as the payment is confirmed, usually within a minute.',
  'plan-changed': 'The plan is being changed. It takes effect within a minute, or at the end of the period.',
  'plan-payment-required': 'The plan changes once its invoice is paid: open the payment portal.',
  'subscription-canceled': 'The subscription is canceled.',
  'subscription-continues': 'The subscription continues.',
  'webhook-paused': 'The endpoint is paused. Its events wait until it is enabled.',
  'webhook-enabled': 'The endpoint is enabled. Events that waited are delivered now.',
  'webhook-deleted': 'The endpoint is deleted.',
  'test-sent': 'The test event is on its way.',
  'delivery-retried': 'The delivery is tried now.',
  'delivery-canceled': 'The delivery is canceled.',
  'labels-changed': 'The labels are changed.',
  'message-canceled': 'Sending is canceled.',
  'message-deleted': 'The message is deleted.',
  'thread-deleted': 'The conversation is deleted.',
  'draft-approved': 'The message is approved.',
  'draft-rejected': 'The message is rejected.',
  'alarm-dismissed': 'The alarm is dismissed. Messages that wait already still wait for a decision.',
  'draft-decided': 'Someone else has already decided on that message.',
  'draft-was-sent': 'The draft was sent. This is its message.',
  'draft-sent': 'The message is on its way.',
  'draft-waits': 'The message waits for the approval of a person now.',
  'draft-unscheduled': 'The draft is not sent by itself any more.',
  'draft-deleted': 'The draft is deleted.',
  'domain-added':
    'The domain is added. Publish its records at your DNS provider; the service looks for them by itself.',
  'domain-checked': 'The records were looked up just now. The result is below.',
  'domain-verified': 'The domain is verified. Inboxes can be created on it.',
  'domain-deleted': 'The domain is deleted. Remove its records at your DNS provider.',
  'dkim-key-made': 'The new key is made. Publish its record; the current key signs until it is found.',
  'suppression-added': 'Nothing is sent to the address any more.',
  'suppression-exists': 'The address was suppressed already.',
  'suppression-lifted': 'The suppression of {about} is lifted. Messages to it are sent again.',
  'list-entry-added': 'The entry is added.',
  'list-entry-exists': 'The entry was there already.',
  'list-entry-removed': 'The entry is removed.',
} as const satisfies Record<string, string> &
  Record<(typeof OAUTH_NOTICES)[keyof typeof OAUTH_NOTICES], string>;

export type Notice = keyof typeof NOTICES;

/** What a notice is about, such as an address. It is signed, so that links cannot put words on a page. */
export function createNotices(signer: Signer) {
  const signatureOf = (notice: Notice, about: string) =>
    signer.sign(`${notice} ${about}`).toString('base64url');
  return {
    sign: (notice: Notice, about: string): string => `${signatureOf(notice, about)}.${about}`,
    /** The sentence that the query of a page asks for; undefined if it asks for none. */
    read(query: unknown): string | undefined {
      const { notice, about = '' } = (query ?? {}) as { notice?: unknown; about?: string };
      if (typeof notice !== 'string' || !Object.hasOwn(NOTICES, notice)) return undefined;
      const [, signature = '', subject = ''] = /^([\w-]{1,64})\.(.{1,320})$/.exec(about) ?? [];
      const isSigned = signer.verify(`${notice} ${subject}`, Buffer.from(signature, 'base64url'));
      return NOTICES[notice as Notice].replace('{about}', () => (isSigned ? subject : 'the address'));
    },
  };
}
