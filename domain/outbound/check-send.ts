import type { Transaction } from '../../platform/database/database.ts';
import type { AppError } from '../../platform/errors.ts';
import type { EventService } from '../events/event.service.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { rejectReceivedLabels } from '../messages/hidden-labels.ts';
import { countRefusedSend } from '../metrics/count-refused-send.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { readGateInput } from './gate-input.ts';
import type { OutboundContent } from './outbound-content.ts';
import { findRefusal, type Refusal, toRefusalError } from './send-gate.ts';

/**
 * Runs the send gate for a request. A refusal creates no message. The returned error commits the transaction, and with
 * it the `message.rejected` event and its metric.
 *
 * @param threadId null if the message starts a thread.
 * @throws AppError `unprocessable` for a label that only the service sets.
 * @returns the error to throw; null if the message may be sent.
 */
export async function checkSend(
  transaction: Transaction,
  events: EventService,
  inbox: Inbox,
  content: OutboundContent,
  threadId: string | null = null,
): Promise<AppError | null> {
  rejectReceivedLabels(content.labels);
  const recipients = toRecipientKeys(content);
  const refusal = findRefusal(await readGateInput(transaction.em, inbox.id, recipients, threadId));
  if (!refusal) return null;
  await recordRefusedSend(transaction, events, { inbox, content, refusal });
  return toRefusalError(refusal);
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
