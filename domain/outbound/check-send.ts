import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
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
import { findRefusal, type Refusal, toRefusalError } from './send-gate.ts';

export interface SendToCheck {
  scope: Pick<Scope, 'sendRefusal'>;
  inbox: Inbox;
  content: OutboundContent;
  /** Null if the message starts a thread. */
  threadId?: string | null;
  /** Unset: the shared domain has no daily cap. */
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

/**
 * Runs the send gate for a request. A refusal creates no message. The returned error commits the transaction, and with
 * it the `message.rejected` event and its metric.
 *
 * @throws AppError `unprocessable` for a label that only the service sets.
 * @returns the error to throw; null if the message may be sent.
 */
export async function checkSend(
  transaction: Transaction,
  events: EventService,
  { scope, inbox, content, threadId = null, sharedDomainLimit }: SendToCheck,
): Promise<AppError | null> {
  if (scope.sendRefusal) return recordRefusedRequest(transaction, events, inbox, content, scope.sendRefusal);
  rejectReceivedLabels(content.labels);
  const recipients = toRecipientKeys(content);
  const { em } = transaction;
  const refusal =
    findRefusal(await readGateInput(em, inbox.id, recipients, threadId)) ??
    (await findCapRefusal(em, inbox, recipients.length, sharedDomainLimit));
  if (!refusal) return null;
  await recordRefusedSend(transaction, events, { inbox, content, refusal });
  return toRefusalError(refusal);
}

/** Records a send that was refused before its use-case ran. The returned error commits the transaction. */
async function recordRefusedRequest(
  transaction: Transaction,
  events: EventService,
  inbox: Inbox,
  content: OutboundContent,
  { reason, error }: SendRefusal,
): Promise<AppError> {
  const { code, detail, fix, headers, extensions } = error;
  await recordRefusedSend(transaction, events, { inbox, content, refusal: { reason, detail } });
  return new AppError(code, { detail, fix, headers, extensions, commitsTransaction: true });
}

export interface RefusedSend {
  inbox: Inbox;
  content: Pick<OutboundContent, 'to' | 'subject'>;
  refusal: Pick<Refusal, 'reason' | 'detail'>;
}

/** Records the event and the metric of a refused send that created no message. */
export async function recordRefusedSend(
  transaction: Transaction,
  events: EventService,
  { inbox, content, refusal }: RefusedSend,
): Promise<void> {
  const now = new Date();
  countRefusedSend(transaction.em, inbox, now);
  await events.record(transaction, {
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    type: 'message.rejected',
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

function toRecipientKeys({ to, cc, bcc }: OutboundContent): string[] {
  return [...new Set([...to, ...cc, ...bcc].map(({ email }) => toAddressKey(email) ?? email.toLowerCase()))];
}

const CAP_REFUSAL: Refusal = {
  check: 'shared_domain_cap',
  reason: 'rate_limited',
  detail: 'The organization has sent to as many recipients today as a new one may on the shared domain.',
  code: 'message_rejected',
  fix: 'Continue tomorrow (UTC): the number doubles after each day of sending with few bounces and complaints. Or send from a domain of your own, which has no such cap.',
};

async function findCapRefusal(
  em: EntityManager,
  inbox: Inbox,
  recipients: number,
  limit: SharedDomainLimit | undefined,
): Promise<Refusal | null> {
  if (!limit) return null;
  return (await takeSharedDomainAllowance(em, inbox, recipients, limit)) === 'exceeded' ? CAP_REFUSAL : null;
}
