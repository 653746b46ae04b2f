import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { redactAddresses } from '../../platform/mail-transport/mail-transport.ts';
import type { SendAttemptState } from '../outbound/send-attempt.entity.ts';

/** What is known of a send whose outcome is unknown, to compare with the log of the relay. No address, and no content. */
export interface SendEvidence {
  messageId: string;
  /** The Message-ID, as the relay logs it, without angle brackets; null if the message has none. */
  rfcMessageId: string | null;
  recipients: RecipientEvidence[];
}

/** The latest attempt for one recipient. */
export interface RecipientEvidence {
  /** From 0, as a decision names it. */
  number: number;
  domain: string;
  /** Of the recipient. */
  status: string;
  /** Whether this one needs a decision. */
  isAmbiguous: boolean;
  attempt: number;
  state: SendAttemptState;
  startedAt: Date;
  /** Null if the worker ended during the attempt. */
  finishedAt: Date | null;
  /** The relay's last answer, or why there is none. */
  response: string | null;
  /** Id that the provider gave the message; null before it accepted it. */
  providerMessageId: string | null;
}

export const MAX_RECIPIENTS = 1_000;

/**
 * For staff, in a transaction of the organization.
 *
 * @returns null unless the outcome of a recipient is unknown.
 */
export async function findSendEvidence(reader: RowReader, messageId: string): Promise<SendEvidence | null> {
  const rows = await reader.execute<
    (SerializedRow<RecipientEvidence> & { rfcMessageId: string | null })[]
  >(sql`
    select m.rfc_message_id as "rfcMessageId", r.position as number, split_part(r.email, '@', -1) as domain, r.status,
      r.status in ('pending', 'deferred') and a.state = 'ambiguous' as "isAmbiguous", a.number as attempt, a.state,
      a.started_at as "startedAt", a.finished_at as "finishedAt", a.response, a.provider_message_id as "providerMessageId"
    from messages m
    join message_recipients r on r.message_id = m.id
    join lateral (
      select * from send_attempts a where a.message_id = r.message_id and a.position = r.position
      order by a.number desc limit 1) a on true
    where m.id = ${messageId} order by r.position limit ${MAX_RECIPIENTS}`);
  if (!rows.some(({ isAmbiguous }) => isAmbiguous)) return null;
  return {
    messageId,
    rfcMessageId: rows[0]?.rfcMessageId ?? null,
    recipients: rows.map(({ rfcMessageId: _, ...row }) => ({
      ...row,
      startedAt: new Date(row.startedAt),
      finishedAt: parseTimestamp(row.finishedAt),
      response: row.response && redactAddresses(row.response),
    })),
  };
}
