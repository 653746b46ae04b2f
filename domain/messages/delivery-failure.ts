import { classifyBounce } from '../delivery-reports/dsn.ts';
import type { Message, Recipient } from './message.entity.ts';

/** Why a message did not reach a recipient, and what to do. */
export interface DeliveryFailure {
  /** `Permanent` and `Transient` as in `message.bounced`; `Complaint`; `Rejected` by this service. */
  type: (typeof FAILURE_TYPES)[number];
  /** The first recipient that it did not reach; null if the whole message was refused. */
  email: string | null;
  /** Enhanced status code (RFC 3463). */
  code: string | null;
  reason: string | null;
  next: string;
}
export const FAILURE_TYPES = ['Permanent', 'Transient', 'Complaint', 'Rejected'] as const;

const FAILED = new Set(['bounced', 'complained', 'suppressed', 'rejected']);

export function isFailure({ status }: Pick<Recipient, 'status'>): boolean {
  return FAILED.has(status);
}

type FailedRecipient = Pick<Recipient, 'email' | 'status' | 'statusCode' | 'diagnosticCode'>;

/** @returns null if nothing failed so far. */
export function describeFailure(
  { status, statusDetail }: Pick<Message, 'status' | 'statusDetail'>,
  recipients: readonly FailedRecipient[],
): DeliveryFailure | null {
  const recipient = recipients.find(isFailure);
  if (recipient && recipient.status !== 'rejected') return describeRecipientFailure(recipient);
  if (status !== 'rejected' && status !== 'failed' && !recipient) return null;
  return {
    type: 'Rejected',
    email: recipient?.email ?? null,
    code: recipient?.statusCode ?? null,
    reason: statusDetail ?? recipient?.diagnosticCode ?? null,
    next: NOT_SENT,
  };
}

const NOT_SENT = 'This service did not send it. Mend what the reason names, and send it again.';

/** Why a message did not reach one recipient; null if nothing failed so far. */
export function describeRecipientFailure(recipient: FailedRecipient): DeliveryFailure | null {
  if (!isFailure(recipient)) return null;
  const { email, status, statusCode: code, diagnosticCode: reason } = recipient;
  const described =
    status === 'rejected' ? { type: 'Rejected' as const, next: NOT_SENT } : classify(recipient);
  return { ...described, email, code, reason };
}

function classify({
  status,
  statusCode,
  diagnosticCode,
}: FailedRecipient): Pick<DeliveryFailure, 'type' | 'next'> {
  if (status === 'complained')
    return {
      type: 'Complaint',
      next: 'The recipient reported it as spam. Do not write to this address again.',
    };
  if (status === 'suppressed')
    return {
      type: 'Permanent',
      next: 'It was not sent: the address is suppressed. Use another address. If the suppression is wrong, DELETE /suppressions/{email}, which needs the permission suppressions:manage, and send again.',
    };
  const { type, subType } = classifyBounce(statusCode, diagnosticCode);
  if (type === 'Transient') return { type, next: 'The problem is temporary. Send it again later.' };
  if (subType === 'NoEmail') return { type, next: 'The address does not exist. Ask for the right one.' };
  return {
    type,
    next: 'The receiving server refused it. Mend what the reason names, or use another address.',
  };
}
