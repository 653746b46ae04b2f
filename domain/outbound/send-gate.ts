import type { ErrorCode } from '../../platform/errors.ts';
import { AppError } from '../../platform/errors.ts';
import { findDecidingMatch } from '../deliverability/list-match.ts';
import type { RecipientRestrictions } from '../deliverability/recipient-restrictions.ts';
import type { RejectionReason } from '../events/event-types.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Environment } from '../organizations/environment.entity.ts';
import type { Organization } from '../organizations/organization.entity.ts';

/** What every check may look at. Later checks (limits, policy) add what they need. */
export interface GateInput {
  organization: Pick<Organization, 'status'>;
  environment: Pick<Environment, 'status'>;
  /** How many the message has in all, whatever became of them. */
  recipientCount: number;
  /** Those still to be sent to which a suppression or a list names; the others are not told. */
  recipients: RecipientRestrictions[];
  /** Null where the message starts a thread. */
  thread: { isPaused: boolean; pausedUntil: Date | null } | null;
  inbox: Pick<Inbox, 'status' | 'sendPaused' | 'sendPausedReason'> & {
    deleted: boolean;
    /** Of a custom domain; the shared one always is. */
    domainVerified: boolean;
  };
}

export interface Refusal {
  /** Name of the check that said no. */
  check: string;
  reason: RejectionReason;
  detail: string;
  /** How the API answers where the refusal is known at the call. */
  code: ErrorCode;
  fix: string;
}

interface GateCheck {
  name: string;
  refuse(subject: GateInput): Omit<Refusal, 'check'> | null;
}

/** The gate before dispatch, run at the call and again when the message's turn comes. The first refusal counts. */
const CHECKS: readonly GateCheck[] = [
  {
    name: 'organization_active',
    refuse: ({ organization }) =>
      organization.status === 'active'
        ? null
        : suspended(
            'organization_suspended',
            'The organization is suspended.',
            'Ask support why, and to reinstate it.',
          ),
  },
  {
    name: 'environment_active',
    refuse: ({ environment }) =>
      environment.status === 'active'
        ? null
        : suspended('environment_suspended', 'The environment is suspended.', 'Ask support to reinstate it.'),
  },
  {
    name: 'inbox_active',
    refuse: ({ inbox }) =>
      inbox.status === 'active' && !inbox.deleted
        ? null
        : suspended('inbox_suspended', 'The inbox is suspended or deleted.', 'Send from another inbox.'),
  },
  {
    name: 'domain_verified',
    refuse: ({ inbox }) =>
      inbox.domainVerified
        ? null
        : {
            reason: 'account_paused',
            detail: 'The domain of this inbox is not verified any more.',
            code: 'domain_not_verified',
            fix: 'Look at the domain’s records, publish what is missing and verify it again.',
          },
  },
  {
    name: 'sending_not_paused',
    refuse: ({ inbox }) =>
      inbox.sendPaused
        ? {
            reason: 'account_paused',
            detail: `Sending from this inbox is paused${inbox.sendPausedReason ? `: ${inbox.sendPausedReason}` : ''}.`,
            code: 'message_rejected',
            fix: 'Look at the inbox’s send_paused_reason, mend the cause, then resume the inbox.',
          }
        : null,
  },
  {
    name: 'recipients_not_blocked',
    refuse({ recipients }) {
      for (const { email, listMatches: listed } of recipients) {
        const verdict = findDecidingMatch(listed);
        if (verdict?.effect !== 'block') continue;
        return {
          reason: 'blocked_recipient',
          detail: `${email} is on a send block list: the entry ${verdict.entry} of the ${verdict.scope}.`,
          code: 'message_rejected',
          fix: 'Send it without the blocked recipient, or have the entry removed or an allow entry made in a narrower scope.',
        };
      }
      return null;
    },
  },
  {
    name: 'some_recipient_not_suppressed',
    refuse(subject) {
      const suppressed = suppressedRecipients(subject);
      if (suppressed.length === 0 || suppressed.length < subject.recipientCount) return null;
      const named = suppressed.map(({ email, suppression }) => `${email} (${suppression.origin})`);
      return {
        reason: 'blocked_recipient',
        detail: `Every recipient is suppressed: ${summarize(named)}.`,
        code: 'message_rejected',
        fix: 'Write to other addresses, or delete the suppression where it is known to be wrong.',
      };
    },
  },
  {
    name: 'thread_not_looping',
    refuse: ({ thread }) =>
      thread?.isPaused
        ? {
            reason: 'rate_limited',
            detail: `Sending in this thread is paused until ${thread.pausedUntil?.toISOString()}: more than 20 messages went each way within 10 minutes.`,
            code: 'message_rejected',
            fix: 'Do not answer mail whose `automated` is true; the pause ends by itself.',
          }
        : null,
  },
];

type SuppressedRecipient = RecipientRestrictions & {
  suppression: NonNullable<RecipientRestrictions['suppression']>;
};

/** Recipients that are left out of the dispatch: each once bounced for good, complained, or was suppressed by hand. */
export function suppressedRecipients({ recipients }: Pick<GateInput, 'recipients'>): SuppressedRecipient[] {
  return recipients.filter((standing): standing is SuppressedRecipient => standing.suppression !== null);
}

const MAX_LISTED_ADDRESSES = 5;

function summarize(named: string[]): string {
  const more = named.length - MAX_LISTED_ADDRESSES;
  return more > 0 ? `${named.slice(0, MAX_LISTED_ADDRESSES).join(', ')} and ${more} more` : named.join(', ');
}

function suspended(code: ErrorCode, detail: string, fix: string): Omit<Refusal, 'check'> {
  return { reason: 'account_paused', detail, code, fix };
}

export function findRefusal(subject: GateInput): Refusal | null {
  for (const check of CHECKS) {
    const refusal = check.refuse(subject);
    if (refusal) return { check: check.name, ...refusal };
  }
  return null;
}

/** The API's answer to a refusal. It `commits`, so that the `message.rejected` event of the same transaction stays. */
export function refusalError(refusal: Refusal): AppError {
  return new AppError(refusal.code, {
    detail: refusal.detail,
    fix: refusal.fix,
    extensions: { rejection_reason: refusal.reason },
    commitsTransaction: true,
  });
}
