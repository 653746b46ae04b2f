import { SIGNALS, type Signal } from '../messages/signals.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { Authentication } from './mail-authentication.ts';

export interface SignalInput {
  from: MailAddress;
  replyTo: readonly MailAddress[];
  automated: boolean;
  authentication: Pick<Authentication, 'spf' | 'dkim' | 'dmarc'>;
  /** The thread was there before, and nobody in it has named the sender's address. */
  isNewParticipant: boolean;
}

export function deriveSignals(facts: SignalInput): Signal[] {
  const { from, replyTo, automated, authentication, isNewParticipant } = facts;
  const told: Record<Signal, boolean> = {
    new_participant: isNewParticipant,
    authentication_failed: hasFailedAuthentication(authentication),
    automated,
    reply_to_differs: replyTo.some(({ email }) => email.toLowerCase() !== from.email.toLowerCase()),
  };
  return SIGNALS.filter((signal) => told[signal]);
}

/** Where the domain in From says nothing (no DMARC record), a sender's address that is refused counts, unless a signature holds. */
function hasFailedAuthentication({ spf, dkim, dmarc }: SignalInput['authentication']): boolean {
  return dmarc === 'fail' || (dmarc === 'none' && spf === 'fail' && dkim !== 'pass');
}
