import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { ImmediateReport, TransmissionResult } from '../../platform/mail-transport/mail-transport.ts';
import type { Message } from '../messages/message.entity.ts';
import { type SendAttempt, SendAttemptEntity, type SimulatedOutcome } from './send-attempt.entity.ts';

export type AttemptKey = Pick<SendAttempt, 'messageId' | 'position' | 'number'>;

const MAX_RESPONSE_CHARACTERS = 1_000;
/** Recording is retried for a long time, because an attempt without a recorded result becomes ambiguous. */
const MAX_SETTLE_TRIES = 120;
const SETTLE_PAUSE_MS = 1_000;

/**
 * Commits the `attempting` row in one statement, under the message's lock: a message that is canceled in the meantime
 * is no longer `sending` when the lock is granted. Two concurrent calls get the same number, and the primary key allows
 * only one of them.
 *
 * @returns null if nothing may be sent: the message is no longer `sending`, the recipient was canceled, or the last attempt does not allow another
 * one. An open attempt belongs to a crashed worker and becomes `ambiguous`.
 */
export function beginAttempt(
  database: Database,
  message: Pick<Message, 'id'>,
  position: number,
): Promise<AttemptKey | null> {
  return database.autocommit(async (em) => {
    const [begun] = await em.execute<{ number: number }[]>(
      // Locks the recipient too, so that one canceled in the meantime is no longer open when the lock is granted.
      sql`with sending as (
         select m.id, m.org_id from messages m
         join message_recipients r on r.message_id = m.id and r.position = ${position}
         where m.id = ${message.id} and m.status = 'sending' and r.status in ('pending', 'deferred')
         for update of m, r),
         last as (select number, state from send_attempts where message_id = ${message.id} and position = ${position}
                  order by number desc limit 1)
       insert into send_attempts (message_id, position, number, org_id, state, started_at)
       select sending.id, ${position}, coalesce(last.number, 0) + 1, sending.org_id, 'attempting', now()
       from sending left join last on true
       where last.state is null or last.state = 'deferred'
       returning number`,
    );
    if (begun) return { messageId: message.id, position, number: begun.number };
    await em.nativeUpdate(
      SendAttemptEntity,
      { messageId: message.id, position, state: 'attempting' },
      {
        state: 'ambiguous',
        response: 'The worker crashed before it recorded the relay’s response.',
        finishedAt: new Date(),
      },
    );
    return null;
  });
}

/**
 * Commits the result of an attempt. It retries for two minutes, and corrects an attempt that another worker has since
 * marked ambiguous.
 *
 * @returns `corrected` in that case: the ambiguity may already be applied to the message.
 * @throws the database error after the last retry.
 */
export async function settleAttempt(
  database: Database,
  key: AttemptKey,
  result: TransmissionResult,
): Promise<'settled' | 'corrected'> {
  const columns = { ...toColumns(result), finishedAt: new Date(), recorded: false };
  for (let tries = 1; ; tries += 1) {
    try {
      return await database.autocommit(async (em) => {
        if ((await em.nativeUpdate(SendAttemptEntity, { ...key, state: 'attempting' }, columns)) === 1)
          return 'settled';
        const changed = await em.nativeUpdate(SendAttemptEntity, { ...key, state: 'ambiguous' }, columns);
        return changed === 1 ? 'corrected' : 'settled';
      });
    } catch (error) {
      if (tries >= MAX_SETTLE_TRIES) throw error;
      await pause(SETTLE_PAUSE_MS);
    }
  }
}

function toColumns(result: TransmissionResult): Partial<SendAttempt> {
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
        simulated: result.reports?.map(toSimulatedOutcome) ?? null,
      };
    case 'deferred':
      return { state: 'deferred', response, statusCode: result.statusCode };
    case 'refused':
      return { state: 'refused', response, statusCode: result.statusCode, refusedScope: result.scope };
    case 'ambiguous':
      return { state: 'ambiguous', response, statusCode: null };
  }
}

function toSimulatedOutcome({ action, status, diagnosticCode }: ImmediateReport): SimulatedOutcome {
  return { kind: action === 'failed' ? 'bounced' : action, statusCode: status, diagnosticCode };
}
