import type { ErrorCode } from '../../platform/errors.ts';
import { AppError } from '../../platform/errors.ts';
import { findDecidingMatch } from '../deliverability/list-match.ts';
import type { RecipientRestrictions } from '../deliverability/recipient-restrictions.ts';
import type { RejectionReason } from '../events/event-types.ts';
import type { OrganizationStatus } from '../identity/authentication.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { isPerson } from '../inboxes/sending-pause.ts';
import type { Environment } from '../organizations/environment.entity.ts';
import type { Policies } from '../policies/find-policies.ts';
import type { RecipientViolation } from '../policies/recipient-policies.ts';

/** The data that the checks of the send gate use. */
export interface GateInput {
  /** Staff have switched sending off. Messages then wait at dispatch and are not refused. */
  isSwitchedOff: boolean;
  organization: { status: OrganizationStatus };
  environment: Pick<Environment, 'status'>;
  /** One of the suspensions in force is for abuse. */
  suspendedForAbuse: boolean;
  /** Number of all recipients of the message, including those already sent to. */
  recipientCount: number;
  /** Unsent recipients that have a suppression or matching list entries; others are omitted. */
  recipients: RecipientRestrictions[];
  /** Null if the message starts a thread. */
  thread: { isPaused: boolean; pausedUntil: Date | null } | null;
  policies: GatePolicies;
  inbox: Pick<Inbox, 'status' | 'sendPaused' | 'sendPausedReason' | 'sendPausedByKind'> & {
    deleted: boolean;
    /** Whether the custom domain is verified; always true for the shared domain. */
    domainVerified: boolean;
  };
}

/** The organization's policies for messages. */
export interface GatePolicies
  extends Pick<Policies, 'maxRecipientsPerMessage' | 'dailySendCapPerInbox' | 'autoSubmittedHeader'> {
  /** Unsent recipients in domains that the organization does not allow. */
  recipientViolations: RecipientViolation[];
  /** Number of recipients for whom a person must approve what an agent sends. Read only for a request. */
  unapprovedRecipients: number;
  /** The received message whose injection alarm demands that a person approves the send; null if none does. Read only for a request. */
  demandingAlarm: string | null;
}

export interface Refusal {
  /** Name of the check that refused. */
  check: string;
  reason: RejectionReason;
  detail: string;
  /** API error code if the gate refuses the request. */
  code: ErrorCode;
  fix: string;
  /** The policy of the organization that refused; undefined for every other check. */
  policy?: string;
  /** When the cap that refused ends; undefined for every other check. */
  resetsAt?: Date;
}

interface GateCheck {
  name: string;
  refuse(input: GateInput): Omit<Refusal, 'check'> | null;
}

/** The checks of the send gate, which runs on the request and again at dispatch. The first refusal applies. */
const CHECKS: readonly GateCheck[] = [
  {
    name: 'organization_open',
    refuse: ({ organization }) =>
      organization.status === 'deleted'
        ? createSuspendedRefusal(
            'organization_deleted',
            'The organization is closed.',
            'Ask an owner to recover the organization.',
          )
        : null,
  },
  {
    name: 'organization_active',
    refuse: ({ organization }) =>
      organization.status === 'active'
        ? null
        : createSuspendedRefusal(
            'organization_suspended',
            'The organization is suspended.',
            'Contact support to have it reinstated.',
          ),
  },
  {
    name: 'environment_active',
    refuse: ({ environment }) =>
      environment.status === 'active'
        ? null
        : createSuspendedRefusal(
            'environment_suspended',
            'The environment is suspended.',
            'Contact support to have it reinstated.',
          ),
  },
  {
    name: 'inbox_active',
    refuse: ({ inbox }) =>
      inbox.status === 'active' && !inbox.deleted
        ? null
        : createSuspendedRefusal(
            'inbox_suspended',
            'The inbox is suspended or deleted.',
            'Send from another inbox.',
          ),
  },
  {
    name: 'domain_verified',
    refuse: ({ inbox }) =>
      inbox.domainVerified
        ? null
        : {
            reason: 'account_paused',
            detail: 'The domain of this inbox is no longer verified.',
            code: 'domain_not_verified',
            fix: 'GET /api/v1/domains shows the domain’s records. Publish the missing ones, then POST /api/v1/domains/{id}/verify.',
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
            fix: isPerson(inbox.sendPausedByKind)
              ? 'Stop sending from this inbox. A person paused it, and a person resumes it: POST /api/v1/inboxes/{id}/resume.'
              : 'Fix the cause given in send_paused_reason of the inbox, then POST /api/v1/inboxes/{id}/resume.',
          }
        : null,
  },
  {
    name: 'recipients_not_blocked',
    refuse({ recipients }) {
      for (const { email, listMatches } of recipients) {
        const match = findDecidingMatch(listMatches);
        if (match?.effect !== 'block') continue;
        return {
          reason: 'blocked_recipient',
          detail: `${email} is on a send block list (entry ${match.entry} of the ${match.scope}).`,
          code: 'message_rejected',
          fix: 'Remove the blocked recipient, delete the entry (DELETE /api/v1/lists/send/block/{entry}), or add an allow entry in a narrower scope (POST /api/v1/lists/send/allow).',
        };
      }
      return null;
    },
  },
  {
    name: 'recipient_domains_allowed',
    refuse({ policies: { recipientViolations } }) {
      const [violation] = recipientViolations;
      if (!violation) return null;
      const { email, policy } = violation;
      const isBlocked = policy === 'blocked_recipient_domains';
      return {
        reason: 'blocked_recipient',
        detail: `The organization’s policy ${policy} does not allow mail to ${email}${isBlocked ? '' : ', whose domain is not on it'}.`,
        code: 'message_rejected',
        fix: 'Remove the recipient, or ask an owner or admin to change the policy (PATCH /api/v1/org/policies).',
        policy,
      };
    },
  },
  {
    name: 'recipient_count_allowed',
    refuse: ({ recipientCount, policies: { maxRecipientsPerMessage: limit } }) =>
      limit === null || recipientCount <= limit
        ? null
        : {
            reason: 'blocked_recipient',
            detail: `The message has ${recipientCount} recipients; the organization allows ${limit}.`,
            code: 'message_rejected',
            fix: `Send several messages with at most ${limit} recipients each.`,
            policy: 'max_recipients_per_message',
          },
  },
  {
    name: 'some_recipient_not_suppressed',
    refuse(input) {
      const suppressed = findSuppressedRecipients(input);
      if (suppressed.length === 0 || suppressed.length < input.recipientCount) return null;
      const descriptions = suppressed.map(({ email, suppression }) => `${email} (${suppression.origin})`);
      return {
        reason: 'blocked_recipient',
        detail: `Every recipient is suppressed: ${summarize(descriptions)}.`,
        code: 'message_rejected',
        fix: 'Send to other addresses, or delete a suppression that is known to be wrong: DELETE /api/v1/suppressions/{email}, with the permission suppressions:manage.',
      };
    },
  },
  {
    name: 'thread_not_looping',
    refuse: ({ thread }) =>
      thread?.isPaused
        ? {
            reason: 'rate_limited',
            detail: `Sending in this thread is paused until ${thread.pausedUntil?.toISOString()}: more than 20 messages were sent in each direction within 10 minutes.`,
            code: 'message_rejected',
            fix: 'Do not reply to messages whose `automated` is true. The pause ends automatically.',
          }
        : null,
  },
];

/**
 * Whether a suspension, or the closing of the organization, holds messages that were accepted before it. A suspension
 * for abuse rejects them instead. A message of a deleted inbox is refused even then, because reinstatement would not
 * restore it.
 */
export function isHeld({
  organization,
  environment,
  inbox,
  suspendedForAbuse,
}: Pick<GateInput, 'organization' | 'environment' | 'suspendedForAbuse'> & {
  inbox: Pick<GateInput['inbox'], 'status' | 'deleted'>;
}): boolean {
  if (inbox.deleted || suspendedForAbuse) return false;
  return [organization, environment, inbox].some(({ status }) => status !== 'active');
}

type SuppressedRecipient = RecipientRestrictions & {
  suppression: NonNullable<RecipientRestrictions['suppression']>;
};

/** Recipients that dispatch skips because of an earlier permanent bounce, a complaint or a manual suppression. */
export function findSuppressedRecipients({
  recipients,
}: Pick<GateInput, 'recipients'>): SuppressedRecipient[] {
  return recipients.filter((recipient): recipient is SuppressedRecipient => recipient.suppression !== null);
}

const MAX_LISTED_ADDRESSES = 5;

function summarize(items: string[]): string {
  const more = items.length - MAX_LISTED_ADDRESSES;
  return more > 0 ? `${items.slice(0, MAX_LISTED_ADDRESSES).join(', ')} and ${more} more` : items.join(', ');
}

function createSuspendedRefusal(code: ErrorCode, detail: string, fix: string): Omit<Refusal, 'check'> {
  return { reason: 'account_paused', detail, code, fix };
}

/** Runs the send gate. Returns null if the message may be sent. */
export function findRefusal(input: GateInput): Refusal | null {
  for (const check of CHECKS) {
    const refusal = check.refuse(input);
    if (refusal) return { check: check.name, ...refusal };
  }
  return null;
}

/** The API error for a refusal. It commits the transaction, which contains the `message.rejected` event. */
export function toRefusalError(refusal: Refusal): AppError {
  return new AppError(refusal.code, {
    detail: refusal.detail,
    fix: refusal.fix,
    extensions: {
      rejection_reason: refusal.reason,
      ...(refusal.policy === undefined ? {} : { policy: refusal.policy }),
      ...(refusal.resetsAt === undefined ? {} : { resets_at: refusal.resetsAt.toISOString() }),
    },
    commitsTransaction: true,
  });
}
