import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { NotTransmitted } from '../../workflows/outbound/send-message.contract.ts';
import type { EventService } from '../events/event.service.ts';
import type { MessageStatus } from '../messages/message.entity.ts';
import { readGateInputOfMessage } from './check-send.ts';
import { HELD_DETAIL, SWITCHED_OFF_DETAIL } from './held-sends.ts';
import { isSettled, isUnsettled } from './message-status.ts';
import {
  findUnsentRecipients,
  hasOpenRecipient,
  lockOutcomeState,
  type OutcomeState,
  saveStatus,
  statusOfRecipients,
} from './outcome-state.ts';
import { createEmptyChanges, type OutcomeChanges, recordOutcomeEvents } from './send-events.ts';
import { findRefusal, findSuppressedRecipients, type GateInput, isHeld } from './send-gate.ts';
import { rejectUnsent } from './stop-send.ts';

/**
 * `allowed`: the gate passed, and the first attempt marks the message `sending`. `proceed`: the message is `sending`, or nothing may be
 * sent, but an attempt may have an unknown outcome.
 */
export type PreparedSend = 'allowed' | 'proceed' | NotTransmitted;

/**
 * Runs the send gate. Usually that takes one statement: the gate finds no refusal, and the first attempt checks again, under its lock,
 * that the message is unsent. Otherwise a refusal is recorded with its event in one transaction.
 *
 * @returns `finished` if there is nothing more to send, `held` while the organization, environment or inbox is suspended for a reason
 * other than abuse, the organization is closed, or sending is switched off.
 */
export async function prepareSend(
  database: Database,
  events: EventService,
  messageId: string,
): Promise<PreparedSend> {
  const gateInput = await readGateInputOfMessage(database.db, messageId);
  if (gateInput && isAllowed(gateInput)) return 'allowed';
  return database.systemTransaction((transaction) => prepareWithLock(transaction, events, messageId));
}

const isAllowed = (gateInput: GateInput & { isUnsent: boolean }): boolean =>
  gateInput.isUnsent &&
  !gateInput.isSwitchedOff &&
  findRefusal(gateInput) === null &&
  findSuppressedRecipients(gateInput).length === 0;

async function prepareWithLock(
  transaction: Transaction,
  events: EventService,
  messageId: string,
): Promise<PreparedSend> {
  const { db } = transaction;
  const state = await lockOutcomeState(db, messageId);
  if (!state || !isUnsettled(state.message.status)) return 'finished';
  const gateInput = await readGateInputOfMessage(db, messageId);
  if (state.message.status === 'needs_attention' && hasUnknownOutcome(state)) {
    // Only a decision or a report can settle those recipients, so they do not wait while the others are held.
    const isWaiting = gateInput !== null && (isHeld(gateInput) || gateInput.isSwitchedOff);
    if (isWaiting || findUnsentRecipients(state).length === 0) return 'proceed';
  }
  if (gateInput && isHeld(gateInput)) return hold(db, state, HELD_DETAIL);
  const refusal = gateInput && findRefusal(gateInput);
  // With an open attempt, the transmission sends nothing, because the message is not `sending`, but ends the attempt.
  if (refusal)
    return (await rejectUnsent(transaction, events, state, refusal)) === 'settled' ? 'finished' : 'proceed';
  if (gateInput && (await bounceSuppressed(transaction, events, state, gateInput)) === 'settled')
    return 'finished';
  // Checked after the refusals, so that a message that will never be sent does not wait.
  if (gateInput?.isSwitchedOff) return hold(db, state, SWITCHED_OFF_DETAIL);
  await setStatus(db, state, { status: 'sending', statusDetail: null });
  return 'proceed';
}

/**
 * Holds an accepted message. Its release starts a new run.
 *
 * @returns `proceed` while a recipient has an open attempt, from a worker that has ended. The transmission then sends nothing, because
 * the message is not `sending`, but marks an attempt without a result `ambiguous`, and the results are recorded.
 */
async function hold(db: Db, state: OutcomeState, statusDetail: string): Promise<'proceed' | 'held'> {
  const open = state.recipients.filter(({ status }) => !isSettled(status));
  if (open.length > findUnsentRecipients(state).length) {
    await setStatus(db, state, { status: 'deferred', statusDetail: null });
    return 'proceed';
  }
  const isUntouched = state.recipients.every(({ status }) => status === 'pending');
  await setStatus(db, state, { status: isUntouched ? 'queued' : 'deferred', statusDetail });
  return 'held';
}

async function setStatus(
  db: Db,
  state: OutcomeState,
  { status, statusDetail }: { status: MessageStatus; statusDetail: string | null },
): Promise<void> {
  const { message } = state;
  if (message.status === status && message.statusDetail === statusDetail) return;
  Object.assign(message, { status, statusDetail });
  await saveStatus(db, state);
}

/** Whether the relay may have accepted the message. If not, `needs_attention` means that sending was stopped. */
const hasUnknownOutcome = ({ attempts }: OutcomeState): boolean =>
  attempts.some(({ state }) => state === 'attempting' || state === 'ambiguous');

/** Used for manual suppressions and complaints, which have no status code from a server. SES reports the same code. */
const DEFAULT_SUPPRESSED_STATUS = '5.1.1';

/**
 * Skips the suppressed recipients and records them as bounced.
 *
 * @returns `settled` if no recipient remains to be sent to.
 */
async function bounceSuppressed(
  transaction: Transaction,
  events: EventService,
  state: OutcomeState,
  gateInput: GateInput,
): Promise<'settled' | 'open'> {
  const suppressed = new Map(
    findSuppressedRecipients(gateInput).map(({ email, suppression }) => [email, suppression]),
  );
  if (suppressed.size === 0) return 'open';
  const { message, recipients, now } = state;
  const bounced: OutcomeChanges['bounced'] = [];
  for (const recipient of findUnsentRecipients(state)) {
    const suppression = suppressed.get(recipient.email.toLowerCase());
    if (!suppression) continue;
    recipient.status = 'suppressed';
    recipient.statusCode = suppression.status ?? DEFAULT_SUPPRESSED_STATUS;
    recipient.diagnosticCode = `Not sent: the address is suppressed (${suppression.origin}).`;
    recipient.updatedAt = now;
    bounced.push({ recipient, bounceKind: { type: 'Permanent', subType: 'Suppressed' } });
  }
  const isOpen = hasOpenRecipient(state);
  if (isOpen && bounced.length === 0) return 'open';
  if (bounced.length > 0) message.bouncedAt ??= now;
  if (!isOpen) message.status = statusOfRecipients(state);
  await saveStatus(transaction.db, state);
  const changes = { ...createEmptyChanges(), bounced };
  await recordOutcomeEvents(transaction, events, { message, recipients }, changes, now);
  return isOpen ? 'open' : 'settled';
}
