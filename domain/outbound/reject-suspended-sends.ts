import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { RETRY_SEND_NOW, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { HAS_ABUSE_SUSPENSION } from '../suspensions/abuse-suspension.ts';
import { readGateInputOfMessage } from './check-send.ts';
import { lockOutcomeState } from './outcome-state.ts';
import { findRefusal } from './send-gate.ts';
import { rejectUnsent } from './stop-send.ts';

/** Each rejection takes several statements, and its event may start deliveries. */
const BATCH_SIZE = 50;

export interface RejectedBatch {
  rejected: number;
  /** Where the next batch begins; null after the last batch. */
  last: string | null;
}

/**
 * Rejects a batch of accepted messages that a suspension for abuse affects, with their events. A run that waits for its next
 * attempt ends.
 */
export async function rejectSuspendedSends(
  transaction: Transaction,
  { events, outbox }: { events: EventService; outbox: Pick<Outbox, 'enqueue'> },
  { organizationId, after }: { organizationId: string; after: string },
): Promise<RejectedBatch> {
  const ids = await lockSuspended(transaction.db, organizationId, after);
  let rejected = 0;
  for (const messageId of ids) {
    if (!(await rejectIfSuspended(transaction, events, messageId))) continue;
    rejected += 1;
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: sendMessageWorkflowId(messageId), signalName: RETRY_SEND_NOW, args: [] },
    });
  }
  const last = ids.length < BATCH_SIZE ? null : (ids.at(-1) ?? null);
  return { rejected, last };
}

/** Locks the next unsent messages that a suspension for abuse affects. */
async function lockSuspended(db: Db, organizationId: string, after: string): Promise<string[]> {
  const rows = await db
    .selectFrom('messages as m')
    .innerJoin('inboxes as i', 'i.id', 'm.inbox_id')
    .innerJoin('environments as e', 'e.id', 'i.env_id')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .select('m.id')
    .where('m.org_id', '=', organizationId)
    .where('m.status', 'in', ['queued', 'sending', 'deferred'])
    .where('m.id', '>', after)
    .where(HAS_ABUSE_SUSPENSION)
    .orderBy('m.id')
    .limit(BATCH_SIZE)
    .forUpdate('m')
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Rejects a message that a suspension for abuse affects. Recipients that are in transmission keep their outcome.
 *
 * @returns false if no such suspension is in force.
 */
async function rejectIfSuspended(
  transaction: Transaction,
  events: EventService,
  messageId: string,
): Promise<boolean> {
  const gateInput = await readGateInputOfMessage(transaction.db, messageId);
  const refusal = gateInput?.suspendedForAbuse ? findRefusal(gateInput) : null;
  const state = refusal && (await lockOutcomeState(transaction.db, messageId));
  if (!state) return false;
  await rejectUnsent(transaction, events, state, refusal);
  return true;
}
