import { setTimeout as pause } from 'node:timers/promises';
import { LockMode } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { ImmediateReport, TransmissionResult } from '../../platform/mail-transport/mail-transport.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { type SendAttempt, SendAttemptEntity, type SimulatedOutcome } from './send-attempt.entity.ts';

export type AttemptKey = Pick<SendAttempt, 'messageId' | 'position' | 'number'>;

const MAX_RESPONSE_CHARACTERS = 1_000;
/** A result is worth waiting for: without it the mail counts as ambiguous. */
const SETTLE_TRIES = 120;
const SETTLE_PAUSE_MS = 1_000;

/**
 * Commits the row that says "the relay is being spoken to", under the message's lock.
 *
 * @returns null where nothing may be sent: the message is no longer `sending`, or the last attempt is not one that
 * invites another. One found open belongs to somebody who died: it becomes `ambiguous`.
 */
export function beginAttempt(
  database: Database,
  message: Message,
  position: number,
): Promise<AttemptKey | null> {
  return database.systemTransaction(async ({ em }) => {
    const current = await em.findOne(
      MessageEntity,
      { id: message.id },
      { fields: ['status'], lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    if (current?.status !== 'sending') return null;
    const last = await em.findOne(
      SendAttemptEntity,
      { messageId: message.id, position },
      { orderBy: { number: 'desc' } },
    );
    if (last?.state === 'attempting') {
      last.state = 'ambiguous';
      last.response = 'The worker that spoke to the relay did not live to tell its answer.';
      last.finishedAt = new Date();
    }
    if (last && last.state !== 'deferred') return null;
    const key = { messageId: message.id, position, number: (last?.number ?? 0) + 1 };
    em.persist(
      em.create(SendAttemptEntity, {
        ...key,
        organizationId: message.organizationId,
        state: 'attempting',
        startedAt: new Date(),
      }),
    );
    return key;
  });
}

/**
 * Commits what the relay answered. Tries for two minutes, as long as the process lives; an attempt that another worker
 * has meanwhile called ambiguous is set right.
 *
 * @throws the database's error, in the end.
 */
export async function settleAttempt(
  database: Database,
  key: AttemptKey,
  result: TransmissionResult,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await database.autocommit((em) =>
        em.nativeUpdate(
          SendAttemptEntity,
          { ...key, state: { $in: ['attempting', 'ambiguous'] } },
          { ...columnsOf(result), finishedAt: new Date(), recorded: false },
        ),
      );
      return;
    } catch (error) {
      if (tries >= SETTLE_TRIES) throw error;
      await pause(SETTLE_PAUSE_MS);
    }
  }
}

function columnsOf(result: TransmissionResult): Partial<SendAttempt> {
  const response = storableText(result.response, MAX_RESPONSE_CHARACTERS);
  switch (result.kind) {
    case 'accepted':
      return {
        state: 'accepted',
        response,
        statusCode: null,
        providerMessageId:
          result.providerMessageId === null ? null : storableText(result.providerMessageId, 255),
        reportsDelivery: result.reportsDelivery,
        simulated: result.reports?.map(simulatedOutcome) ?? null,
      };
    case 'deferred':
      return { state: 'deferred', response, statusCode: result.statusCode };
    case 'refused':
      return { state: 'refused', response, statusCode: result.statusCode, refusedScope: result.scope };
    case 'ambiguous':
      return { state: 'ambiguous', response, statusCode: null };
  }
}

function simulatedOutcome({ action, status, diagnosticCode }: ImmediateReport): SimulatedOutcome {
  return { kind: action === 'failed' ? 'bounced' : action, statusCode: status, diagnosticCode };
}
