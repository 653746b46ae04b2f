import type { Transaction } from '../../platform/database/database.ts';
import type { AppError } from '../../platform/errors.ts';
import { addressKey } from '../deliverability/address-key.ts';
import type { EventService } from '../events/event.service.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { countRefusedSend } from '../metrics/count-refused-send.ts';
import { readGateInput } from './gate-input.ts';
import type { OutboundContent } from './outbound-content.ts';
import { findRefusal, type Refusal, refusalError } from './send-gate.ts';

/**
 * Runs the gate at the call. A refusal creates no message; the error returned commits, and with it the
 * `message.rejected` event and its place in the metrics.
 *
 * @param threadId null where the message starts a thread.
 */
export async function checkSend(
  transaction: Transaction,
  events: EventService,
  inbox: Inbox,
  content: OutboundContent,
  threadId: string | null = null,
): Promise<AppError | null> {
  const recipients = recipientKeys(content);
  const refusal = findRefusal(await readGateInput(transaction.em, inbox.id, recipients, threadId));
  if (!refusal) return null;
  await recordRefusedSend(transaction, events, { inbox, content, refusal });
  return refusalError(refusal);
}

export interface RefusedSend {
  inbox: Inbox;
  content: Pick<OutboundContent, 'to' | 'subject'>;
  refusal: Pick<Refusal, 'reason' | 'detail'>;
}

/** Tells of a send that was refused and left no message. */
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

function recipientKeys({ to, cc, bcc }: OutboundContent): string[] {
  return [...new Set([...to, ...cc, ...bcc].map(({ email }) => addressKey(email) ?? email.toLowerCase()))];
}
