import type { ErrorCode } from '../../platform/errors.ts';
import { AppError } from '../../platform/errors.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Environment } from '../organizations/environment.entity.ts';
import type { Organization } from '../organizations/organization.entity.ts';
import type { RejectionReason } from '../webhooks/event-types.ts';

/** What every check may look at. Later checks (suppressions, lists, limits, policy) add what they need. */
export interface GateSubject {
  organization: Pick<Organization, 'status'>;
  environment: Pick<Environment, 'status'>;
  inbox: Pick<Inbox, 'status' | 'sendPaused' | 'sendPausedReason'> & { deleted: boolean };
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
  refuse(subject: GateSubject): Omit<Refusal, 'check'> | null;
}

/** The gate before dispatch, run at the call and again when the message's turn comes. The first refusal counts. */
const GATE: readonly GateCheck[] = [
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
];

function suspended(code: ErrorCode, detail: string, fix: string): Omit<Refusal, 'check'> {
  return { reason: 'account_paused', detail, code, fix };
}

export function passGate(subject: GateSubject): Refusal | null {
  for (const check of GATE) {
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
    commits: true,
  });
}
