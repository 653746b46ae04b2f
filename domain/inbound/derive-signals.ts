import { SIGNALS, type Signal } from '../messages/signals.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { Authentication } from './mail-authentication.ts';

export interface SignalInput {
  from: MailAddress;
  replyTo: readonly MailAddress[];
  automated: boolean;
  authentication: Pick<Authentication, 'spf' | 'dkim' | 'dmarc'>;
  /** The thread existed before, and the sender's address did not occur in it. */
  isNewParticipant: boolean;
}

export function deriveSignals(input: SignalInput): Signal[] {
  const { from, replyTo, automated, authentication, isNewParticipant } = input;
  const present: Record<Signal, boolean> = {
    new_participant: isNewParticipant,
    authentication_failed: hasFailedAuthentication(authentication),
    automated,
    reply_to_differs: replyTo.some(({ email }) => email.toLowerCase() !== from.email.toLowerCase()),
  };
  return SIGNALS.filter((signal) => present[signal]);
}

/** If the From domain has no DMARC record, a failed SPF check is a failure unless a DKIM signature passes. */
function hasFailedAuthentication({ spf, dkim, dmarc }: SignalInput['authentication']): boolean {
  return dmarc === 'fail' || (dmarc === 'none' && spf === 'fail' && dkim !== 'pass');
}
