import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { returnInboxAllowance, takeInboxAllowance } from '../deliverability/inbox-daily-sends-rows.ts';
import {
  type SharedDomainLimit,
  takeSharedDomainAllowance,
} from '../deliverability/shared-domain-cap-rows.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope, SendRefusal } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { rejectReceivedLabels } from '../messages/hidden-labels.ts';
import { countRefusedSend } from '../metrics/count-refused-send.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { readGateInput } from './gate-input.ts';
import type { OutboundContent } from './outbound-content.ts';
import { findRefusal, type GateInput, type Refusal, toRefusalError } from './send-gate.ts';

export interface SendToCheck {
  scope: Pick<Scope, 'sendRefusal' | 'actor'>;
  inbox: Inbox;
  content: Pick<OutboundContent, 'to' | 'cc' | 'bcc' | 'subject' | 'labels'>;
  /** The draft to send; unset if the request has the content. */
  draftId?: string | undefined;
  /** Null if the message starts a thread. */
  threadId?: string | null;
  /** A person approved this content: no further approval is asked for. */
  isApproved?: boolean | undefined;
  /** It waits for an approval already, and needs one even if the policy has changed since. */
  isWaiting?: boolean | undefined;
  /** Unset: the shared domain has no daily cap. */
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

/** What happens with a message that passed the gate. */
export interface CheckedSend {
  /** A person must approve it before it is sent. Nothing has been taken from the daily allowances. */
  needsApproval: boolean;
  /** Whether the message says that no person wrote it (RFC 3834). */
  autoSubmitted: boolean;
}

/**
 * Runs the send gate for a request, and takes the message from the daily allowances. A refusal creates no message. Its
 * error commits the transaction, and with it the `message.rejected` event and its metric.
 *
 * @throws AppError the refusal, or `unprocessable` for a label that only the service sets.
 */
export async function checkSend(
  transaction: Transaction,
  events: EventService,
  {
    scope,
    inbox,
    content,
    draftId,
    threadId = null,
    isApproved = false,
    isWaiting = false,
    sharedDomainLimit,
  }: SendToCheck,
): Promise<CheckedSend> {
  if (scope.sendRefusal)
    throw await recordRefusedRequest(transaction, events, { inbox, content, draftId }, scope.sendRefusal);
  rejectReceivedLabels(content.labels);
  const recipients = toRecipientKeys(content);
  const { em } = transaction;
  const gateInput = await readGateInput(em, inbox.id, recipients, threadId);
  const needsApproval = !isApproved && (isWaiting || isForApproval(scope, gateInput));
  const refusal =
    findRefusal(gateInput) ??
    (needsApproval
      ? null
      : await findCapRefusal(em, inbox, {
          recipients: recipients.length,
          sharedDomainLimit,
          inboxCap: gateInput.policies.dailySendCapPerInbox,
        }));
  if (!refusal) return { needsApproval, autoSubmitted: isAutoSubmitted(scope, gateInput) };
  await recordRefusedSend(transaction, events, { inbox, content, draftId, refusal });
  throw toRefusalError(refusal);
}

/** People need no approval for what they send. */
function isForApproval({ actor }: Pick<Scope, 'actor'>, { policies }: Pick<GateInput, 'policies'>): boolean {
  return actor.kind !== 'user' && policies.unapprovedRecipients > 0;
}

/** Whether a person must approve the content before it is sent, for sends that are only planned yet. */
export async function requiresApproval(
  em: EntityManager,
  { scope, inbox, content }: Pick<SendToCheck, 'scope' | 'content'> & { inbox: Pick<Inbox, 'id'> },
): Promise<boolean> {
  if (scope.actor.kind === 'user') return false;
  return isForApproval(scope, await readGateInput(em, inbox.id, toRecipientKeys(content), null));
}

/** A person's own message is not automatic. */
function isAutoSubmitted(
  { actor }: Pick<Scope, 'actor'>,
  { policies }: Pick<GateInput, 'policies'>,
): boolean {
  return actor.kind !== 'user' && policies.autoSubmittedHeader;
}

/** Records a send that was refused before its use-case ran. The returned error commits the transaction. */
async function recordRefusedRequest(
  transaction: Transaction,
  events: EventService,
  send: Omit<RefusedSend, 'refusal'>,
  { reason, error }: SendRefusal,
): Promise<AppError> {
  const { code, detail, fix, headers, extensions } = error;
  await recordRefusedSend(transaction, events, { ...send, refusal: { reason, detail } });
  return new AppError(code, { detail, fix, headers, extensions, commitsTransaction: true });
}

export interface RefusedSend {
  inbox: Inbox;
  content: Pick<OutboundContent, 'to' | 'subject'>;
  draftId?: string | undefined;
  refusal: Pick<Refusal, 'reason' | 'detail'>;
}

/** Records the event and the metric of a refused send that created no message. */
export async function recordRefusedSend(
  transaction: Transaction,
  events: EventService,
  { inbox, content, draftId, refusal }: RefusedSend,
): Promise<void> {
  const now = new Date();
  countRefusedSend(transaction.em, inbox, now);
  await events.record(transaction, {
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    type: 'message.rejected',
    aboutId: draftId,
    data: {
      inbox_id: inbox.id,
      from_address: inbox.email,
      to_addresses: content.to.map(({ email }) => email),
      subject: content.subject ?? '',
      rejection_reason: refusal.reason,
      rejection_detail: refusal.detail,
      rejected_at: now.toISOString(),
    },
  });
}

/** Distinct normalized addresses. */
export function toRecipientKeys({ to, cc, bcc }: Pick<OutboundContent, 'to' | 'cc' | 'bcc'>): string[] {
  return [...new Set([...to, ...cc, ...bcc].map(({ email }) => toAddressKey(email) ?? email.toLowerCase()))];
}

const SHARED_DOMAIN_REFUSAL: Refusal = {
  check: 'shared_domain_cap',
  reason: 'rate_limited',
  detail: 'The organization has sent to as many recipients today as a new one may on the shared domain.',
  code: 'message_rejected',
  fix: 'Continue tomorrow (UTC): the number doubles after each day of sending with few bounces and complaints. Or send from a domain of your own, which has no such cap.',
};

const createInboxCapRefusal = (cap: number): Refusal => ({
  check: 'inbox_cap',
  reason: 'rate_limited',
  detail: `The inbox has sent as many messages today (UTC) as the organization allows: ${cap}.`,
  code: 'message_rejected',
  fix: 'Continue tomorrow (UTC), send from another inbox, or ask an owner or admin to raise daily_send_cap_per_inbox.',
  policy: 'daily_send_cap_per_inbox',
});

interface DailyCaps {
  recipients: number;
  sharedDomainLimit: SharedDomainLimit | undefined;
  /** Null: the organization sets none. */
  inboxCap: number | null;
}

/** Takes the message from each allowance that applies, or from none. */
async function findCapRefusal(
  em: EntityManager,
  inbox: Inbox,
  { recipients, sharedDomainLimit, inboxCap }: DailyCaps,
): Promise<Refusal | null> {
  if (inboxCap !== null && (await takeInboxAllowance(em, inbox, inboxCap)) === 'exceeded')
    return createInboxCapRefusal(inboxCap);
  if (!sharedDomainLimit) return null;
  if ((await takeSharedDomainAllowance(em, inbox, recipients, sharedDomainLimit)) === 'taken') return null;
  // The refusal commits the transaction.
  if (inboxCap !== null) await returnInboxAllowance(em, inbox.id);
  return SHARED_DOMAIN_REFUSAL;
}
