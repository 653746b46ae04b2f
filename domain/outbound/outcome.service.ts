import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { AmbiguityDecision } from '../../workflows/outbound/send-message.contract.ts';
import { recordReputation } from '../deliverability/record-reputation.ts';
import { type NegativeOutcome, suppressAddresses } from '../deliverability/suppress-addresses.ts';
import { classifyBounce } from '../delivery-reports/dsn.ts';
import type { DeliveryOutcome } from '../delivery-reports/report-outcomes.ts';
import type { EventService } from '../events/event.service.ts';
import { isHeldDetail } from './held-sends.ts';
import {
  deriveStatus,
  isAwaitingReport,
  isSettled,
  isUnsettled,
  type SendState,
  settledAs,
  statusAfterReport,
} from './message-status.ts';
import {
  findAmbiguousPositions,
  findUnsentRecipients,
  hasOpenRecipient,
  lockOutcomeState,
  type OutcomeAttempt,
  type OutcomeMessage,
  type OutcomeRecipient,
  type OutcomeState,
  rejectRecipients,
  saveOutcomeState,
  toSendState,
} from './outcome-state.ts';
import { RESTORED_RESPONSE } from './send-attempt.entity.ts';
import { type EventRecipient, type OutcomeChanges, recordOutcomeEvents } from './send-events.ts';
import { notifyTracking, signalSend } from './workflow-commands.ts';

export interface OutcomeServiceOptions {
  events: EventService;
  outbox: Outbox;
  /** A recipient that is deferred again this long after queueing bounces. */
  retryWindowMs: number;
  /** Domain of the simulator's addresses, whose outcomes neither suppress addresses nor pause inboxes. */
  simulatorDomain: string;
}

export type OutcomeService = ReturnType<typeof createOutcomeService>;

export function createOutcomeService({
  events,
  outbox,
  retryWindowMs,
  simulatorDomain,
}: OutcomeServiceOptions) {
  return {
    /**
     * Applies attempts and reported outcomes to the message and its recipients, and records the events. All outcomes are
     * applied here, in any order. Idempotent.
     *
     * @param outcomes from reports; empty when the send records its own attempts.
     * @returns null if the message does not exist.
     */
    async apply(
      transaction: Transaction,
      messageId: string,
      outcomes: DeliveryOutcome[],
    ): Promise<SendState | null> {
      const { db } = transaction;
      const outcomeState = await lockOutcomeState(db, messageId);
      if (!outcomeState) return null;
      const { message, recipients, changes, now } = outcomeState;
      const previousStatus = message.status;
      if (previousStatus === 'canceled') return settledAs('canceled');
      const simulated = recordAttempts(outcomeState, outcomes);
      // The time on hold says nothing about the recipient's server.
      const isHeld = isHeldDetail(message.statusDetail);
      if (!isHeld) bounceExpired(outcomeState, retryWindowMs);
      for (const outcome of [...outcomes, ...simulated]) applyOutcome(outcomeState, outcome);
      const ambiguous = findAmbiguousPositions(outcomeState).length > 0;
      // A report may arrive while the workflow is still transmitting to other recipients. The message then remains
      // `sending`.
      const isTransmitting = previousStatus === 'sending';
      // Sending was stopped, and only an operator can resume it.
      const isStopped =
        previousStatus === 'needs_attention' &&
        !outcomeState.attempts.some(({ stateRead }) => stateRead === 'ambiguous');
      const isOpen = hasOpenRecipient(outcomeState);
      // What is settled may be recorded again. That changes nothing, not even the reason.
      const isUnchanged =
        !isUnsettled(previousStatus) && recipients.every(({ updatedAt }) => updatedAt !== now);
      const keepsStatus = isUnchanged || ((isTransmitting || isStopped) && outcomes.length > 0 && isOpen);
      if (!keepsStatus) {
        message.status = deriveStatus(
          recipients.map(({ status }) => status),
          ambiguous,
        );
        // Recorded now or before: the attempts of the state are only those that are open or new.
        const isCanceled = recipients.some(({ diagnosticCode }) => diagnosticCode === CANCELED_DETAIL);
        if (isCanceled && message.status === 'rejected') message.status = 'canceled';
        if (ambiguous) message.statusDetail = describeAmbiguity(outcomeState.attempts);
        // What is held stays held: its release looks for the detail.
        else if (!(isHeld && isOpen))
          message.statusDetail =
            changes.rejected.at(-1)?.diagnosticCode ?? (isCanceled ? CANCELED_DETAIL : null);
      }
      notifyTracking(transaction, outbox, outcomeState, outcomes.length > 0);
      await saveOutcomeState(db, outcomeState);
      await recordOutcomeEvents(transaction, events, { message, recipients }, changes, now);
      await applyReputation(db, message, changes, simulatorDomain);
      const isResolved = outcomeState.attempts.some(
        ({ state, stateRead }) => stateRead === 'ambiguous' && state !== 'ambiguous',
      );
      if (isResolved || (previousStatus === 'needs_attention' && !ambiguous))
        signalSend(transaction, outbox, message);
      return toSendState(outcomeState);
    },
  };
}

/** Applies the results of the attempts. @returns what is left to do. */
export async function applyAttempts(
  transaction: Transaction,
  outcomes: OutcomeService,
  messageId: string,
): Promise<SendState> {
  return (await outcomes.apply(transaction, messageId, [])) ?? settledAs('deleted');
}

/** Applies the results of the attempts in a new transaction. @returns what is left to do. */
export function recordSend(
  database: Database,
  outcomes: OutcomeService,
  messageId: string,
): Promise<SendState> {
  return database.systemTransaction((transaction) => applyAttempts(transaction, outcomes, messageId));
}

/** The state of a message for which nothing is left to do. */
export async function readSettledState({ db }: Database, messageId: string): Promise<SendState> {
  const message = await db
    .selectFrom('messages')
    .select('status')
    .where('id', '=', messageId)
    .executeTakeFirst();
  return settledAs(message?.status ?? 'deleted');
}

/** Applies an operator's decision about the ambiguous attempts. @returns what is left to do. */
export function resolveAmbiguity(
  database: Database,
  outcomes: OutcomeService,
  messageId: string,
  decision: AmbiguityDecision,
): Promise<SendState> {
  return database.systemTransaction(async (transaction) => {
    await resolveAttempts(transaction, messageId, decision);
    return applyAttempts(transaction, outcomes, messageId);
  });
}

/** Applies an operator's decision to the ambiguous attempts that it is about. */
async function resolveAttempts(
  { db }: Transaction,
  messageId: string,
  { resolution, recipient, decidedAt }: AmbiguityDecision,
): Promise<void> {
  // Everything that changes attempts locks the message first.
  await db.selectFrom('messages').select('id').where('id', '=', messageId).forUpdate().execute();
  const { numUpdatedRows } = await db
    .updateTable('send_attempts')
    .set({ state: resolution === 'sent' ? 'accepted' : 'deferred', recorded: false, canceled: false })
    .where('message_id', '=', messageId)
    .where('state', '=', 'ambiguous')
    .$if(recipient !== undefined, (query) => query.where('position', '=', recipient as number))
    .$if(decidedAt !== undefined, (query) => query.where('started_at', '<=', new Date(decidedAt as string)))
    .executeTakeFirst();
  // The decision may be made after the retry window of the message has ended, so the window restarts.
  if (numUpdatedRows > 0n && resolution === 'resend')
    await db.updateTable('messages').set({ queued_at: new Date() }).where('id', '=', messageId).execute();
}

/** Builds the update that marks the open attempts of a message `ambiguous`, because their worker has ended. */
export const abandonAttempts = (db: Db, messageId: string) =>
  db
    .updateTable('send_attempts')
    .set({
      state: 'ambiguous',
      response: 'The worker crashed before it recorded the relay’s response.',
      finished_at: new Date(),
    })
    .where('message_id', '=', messageId)
    .where('state', '=', 'attempting');

const CANCELED_DETAIL = 'Canceled, and then deferred by the relay.';

const AMBIGUOUS_DETAIL =
  'The connection to the relay was lost, and the relay may have accepted the message. It is not resent automatically.';

function describeAmbiguity(attempts: readonly OutcomeAttempt[]): string {
  const isRestored = attempts.some(
    ({ state, response }) => state === 'ambiguous' && response === RESTORED_RESPONSE,
  );
  return isRestored ? `${RESTORED_RESPONSE} It is not resent automatically.` : AMBIGUOUS_DETAIL;
}

/**
 * Applies the results of the attempts. A report about a recipient proves that its open attempt was accepted.
 *
 * @returns the outcomes that the simulator reports immediately.
 */
function recordAttempts(outcomeState: OutcomeState, outcomes: DeliveryOutcome[]): DeliveryOutcome[] {
  const { attempts, recorded, now } = outcomeState;
  const reported = new Set(outcomes.map(({ position }) => position));
  const simulated: DeliveryOutcome[] = [];
  for (const attempt of attempts) {
    if (reported.has(attempt.position) && (attempt.state === 'attempting' || attempt.state === 'ambiguous')) {
      attempt.state = 'accepted';
      attempt.finishedAt ??= now;
      attempt.recorded = false;
    }
    if (attempt.recorded || attempt.state === 'attempting') continue;
    attempt.recorded = true;
    recorded.push(attempt);
    recordAttempt(outcomeState, attempt);
    for (const outcome of attempt.simulated ?? []) simulated.push({ position: attempt.position, ...outcome });
  }
  return simulated;
}

function recordAttempt(outcomeState: OutcomeState, attempt: OutcomeAttempt): void {
  const { message, recipients, changes, now } = outcomeState;
  const recipient = recipients.find(({ position }) => position === attempt.position);
  if (!recipient || isSettled(recipient.status)) return;
  recipient.statusCode = attempt.statusCode;
  recipient.diagnosticCode = attempt.response;
  recipient.updatedAt = now;
  if (attempt.state === 'accepted') {
    recipient.status = 'sent';
    recipient.sentAt = attempt.finishedAt;
    message.sentAt ??= attempt.finishedAt ?? now;
    message.providerMessageId ??= attempt.providerMessageId ?? message.rfcMessageId;
    changes.sent.push(recipient);
  } else if (attempt.state === 'deferred') {
    if (attempt.canceled) rejectRecipients(outcomeState, [recipient], CANCELED_DETAIL);
    else recipient.status = 'deferred';
  } else if (attempt.state === 'refused' && attempt.refusedScope === 'message') {
    recipient.status = 'rejected';
    changes.rejected.push(recipient);
  } else if (attempt.state === 'refused') {
    bounce({ message, changes, now }, recipient, classifyBounce(attempt.statusCode, attempt.response));
  }
}

/**
 * Bounces the recipients whose last attempt was deferred after the retry window. No others: a recipient on hold has not
 * been tried again, and one with an open or ambiguous attempt may have the message.
 */
function bounceExpired(outcomeState: OutcomeState, retryWindowMs: number): void {
  const { message, recorded, changes, now } = outcomeState;
  const queuedAt = (message.queuedAt ?? message.createdAt).getTime();
  if (now.getTime() - queuedAt < retryWindowMs) return;
  const deferred = new Set(recorded.flatMap(({ state, position }) => (state === 'deferred' ? position : [])));
  for (const recipient of findUnsentRecipients(outcomeState)) {
    if (recipient.status !== 'deferred' || !deferred.has(recipient.position)) continue;
    bounce({ message, changes, now }, recipient, { type: 'Transient', subType: 'General' });
  }
}

function applyOutcome({ message, recipients, changes, now }: OutcomeState, outcome: DeliveryOutcome): void {
  const recipient = recipients.find(({ position }) => position === outcome.position);
  if (!recipient || recipient.status === 'rejected') return;
  if (outcome.kind === 'delayed') {
    if (!isAwaitingReport(recipient.status)) return;
    recipient.diagnosticCode = outcome.diagnosticCode;
    recipient.updatedAt = now;
    return;
  }
  const next = statusAfterReport(recipient.status, outcome.kind);
  if (next === recipient.status) return;
  recipient.statusCode = outcome.statusCode;
  recipient.diagnosticCode = outcome.diagnosticCode;
  if (outcome.kind === 'bounced') {
    bounce({ message, changes, now }, recipient, classifyBounce(outcome.statusCode, outcome.diagnosticCode));
    return;
  }
  recipient.status = next;
  recipient.updatedAt = now;
  if (outcome.kind === 'delivered') {
    message.deliveredAt ??= now;
    changes.delivered.push(recipient);
  } else {
    message.complainedAt ??= now;
    changes.complained.push({ recipient, feedbackType: outcome.feedbackType ?? 'abuse' });
  }
}

function bounce(
  { message, changes, now }: Pick<OutcomeState, 'message' | 'changes' | 'now'>,
  recipient: OutcomeRecipient,
  bounceKind: OutcomeChanges['bounced'][number]['bounceKind'],
): void {
  recipient.status = 'bounced';
  recipient.updatedAt = now;
  message.bouncedAt ??= now;
  changes.bounced.push({ recipient, bounceKind });
}

/** Suppresses invalid addresses and complainants, and counts the outcomes against the sending inbox. */
async function applyReputation(
  db: Db,
  message: OutcomeMessage,
  changes: OutcomeChanges,
  simulatorDomain: string,
): Promise<void> {
  const outcomes = findNegativeOutcomes(changes).filter(
    ({ email }) => !email.toLowerCase().endsWith(`@${simulatorDomain}`),
  );
  if (outcomes.length === 0) return;
  const { organizationId, environmentId, inboxId, id } = message;
  const source = { organizationId, environmentId, inboxId, messageId: id };
  await suppressAddresses(db, source, outcomes);
  await recordReputation(db, source, outcomes, simulatorDomain);
}

/** Bounces because of an invalid address, and complaints. Policy, size and a full mailbox do not count. */
function findNegativeOutcomes({ bounced, complained }: OutcomeChanges): NegativeOutcome[] {
  const invalidAddress = bounced.filter(
    ({ bounceKind }) => bounceKind.type === 'Permanent' && bounceKind.subType === 'NoEmail',
  );
  return [
    ...invalidAddress.map(({ recipient }) => toNegativeOutcome('bounce', recipient)),
    ...complained.map(({ recipient }) => toNegativeOutcome('complaint', recipient)),
  ];
}

function toNegativeOutcome(
  kind: NegativeOutcome['kind'],
  { position, email, statusCode, diagnosticCode }: EventRecipient,
): NegativeOutcome {
  return { position, email, kind, status: statusCode, diagnostic: diagnosticCode };
}
