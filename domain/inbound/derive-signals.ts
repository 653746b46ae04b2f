import { SIGNALS, type Signal } from '../messages/message.entity.ts';
import { isWithinDomain } from '../mime/domain-name.ts';
import { domainOf, type MailAddress } from '../mime/mail-address.ts';
import type { Authentication } from './mail-authentication.ts';

export interface SignalInput {
  from: MailAddress;
  replyTo: readonly MailAddress[];
  automated: boolean;
  authentication: Pick<Authentication, 'spf' | 'dkim' | 'dmarc'>;
  /** The thread existed before, and the sender's address did not occur in it. */
  isNewParticipant: boolean;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** The address of the inbox, without a tag. */
  inboxEmail: string;
  hasHiddenText: boolean;
  hasMismatchedLink: boolean;
  /** The envelope sender stands in for the author. */
  hasNoAuthor: boolean;
}

export function deriveSignals(input: SignalInput): Signal[] {
  const { from, replyTo, automated, authentication, isNewParticipant } = input;
  const present: Record<Signal, boolean> = {
    new_participant: isNewParticipant,
    authentication_failed: hasFailedAuthentication(authentication),
    automated,
    reply_to_differs: replyTo.some(({ email }) => email.toLowerCase() !== from.email.toLowerCase()),
    hidden_text: input.hasHiddenText,
    link_mismatch: input.hasMismatchedLink,
    spoofed_self: isSpoofedSelf(input),
    no_author: input.hasNoAuthor,
  };
  return SIGNALS.filter((signal) => present[signal]);
}

/** If the From domain has no DMARC record, a failed SPF check is a failure unless a DKIM signature passes. */
function hasFailedAuthentication({ spf, dkim, dmarc }: SignalInput['authentication']): boolean {
  return dmarc === 'fail' || (dmarc === 'none' && spf === 'fail' && dkim !== 'pass');
}

/** A From in the inbox's domain without authentication, or a sender elsewhere whose name is the inbox's address. */
function isSpoofedSelf({ from, mailFrom, inboxEmail, authentication }: SignalInput): boolean {
  const own = domainOf(inboxEmail);
  if (!isWithinDomain(domainOf(from.email), own))
    return (from.name ?? '').toLowerCase().includes(inboxEmail.toLowerCase());
  const { spf, dkim, dmarc } = authentication;
  if (dmarc === 'pass') return false;
  // Without a DMARC record. SPF only checks the envelope sender. A signature may be of any domain if DMARC fails.
  const isSender = spf === 'pass' && isWithinDomain(domainOf(mailFrom), own);
  return dmarc === 'fail' || !(isSender || dkim === 'pass');
}

/**
 * Whether a program sent the message. An agent that replies to it may start a loop.
 *
 * Checks Auto-Submitted other than `no` (RFC 3834), Precedence bulk, junk or list, List-Id (RFC 2919), the null sender
 * (RFC 5321 section 4.5.5), X-Auto-Response-Suppress.
 *
 * @param headers with lower-case names.
 */
export function isAutoSubmitted(headers: Record<string, string>, mailFrom: string): boolean {
  const autoSubmitted = headers['auto-submitted']?.trim().toLowerCase();
  if (autoSubmitted !== undefined && !autoSubmitted.startsWith('no')) return true;
  if (/^(bulk|junk|list)\b/i.test(headers.precedence?.trim() ?? '')) return true;
  return mailFrom === '' || 'list-id' in headers || 'x-auto-response-suppress' in headers;
}
