import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { redactAddresses } from '../../platform/mail-transport/mail-transport.ts';
import type { SendAttemptState } from '../outbound/send-attempt.entity.ts';

/** Facts about a send with an unknown outcome, to compare with the log of the relay. Contains no address and no content. */
export interface SendEvidence {
  messageId: string;
  /** The Message-ID, as the relay logs it, without angle brackets; null if the message has none. */
  rfcMessageId: string | null;
  recipients: RecipientEvidence[];
}

/** The latest attempt for one recipient. */
export interface RecipientEvidence {
  /** Number from 0, as used in a decision. */
  number: number;
  domain: string;
  /** Status of the recipient. */
  status: string;
  /** Whether this recipient needs a decision. */
  isAmbiguous: boolean;
  attempt: number;
  state: SendAttemptState;
  startedAt: Date;
  /** Null if the worker ended during the attempt. */
  finishedAt: Date | null;
  /** The relay's last reply, or why there is none. */
  response: string | null;
  /** Id that the provider gave the message; null before the provider accepted it. */
  providerMessageId: string | null;
}

export const MAX_RECIPIENTS = 1_000;

/**
 * For staff, in a transaction of the organization.
 *
 * @returns null unless the outcome of a recipient is unknown.
 */
export async function findSendEvidence(db: Db, messageId: string): Promise<SendEvidence | null> {
  const rows = await db
    .selectFrom('messages as m')
    .innerJoin('message_recipients as r', 'r.message_id', 'm.id')
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('send_attempts as a')
          .select([
            'a.number',
            'a.state',
            'a.started_at',
            'a.finished_at',
            'a.response',
            'a.provider_message_id',
          ])
          .whereRef('a.message_id', '=', 'r.message_id')
          .whereRef('a.position', '=', 'r.position')
          .orderBy('a.number', 'desc')
          .limit(1)
          .as('a'),
      (join) => join.onTrue(),
    )
    .select([
      'm.rfc_message_id as rfcMessageId',
      'r.position as number',
      sql<string>`split_part(r.email, '@', -1)`.as('domain'),
      'r.status',
      sql<boolean>`r.status in ('pending', 'deferred') and a.state = 'ambiguous'`.as('isAmbiguous'),
      'a.number as attempt',
      'a.state',
      'a.started_at as startedAt',
      'a.finished_at as finishedAt',
      'a.response',
      'a.provider_message_id as providerMessageId',
    ])
    .where('m.id', '=', messageId)
    .orderBy('r.position')
    .limit(MAX_RECIPIENTS)
    .execute();
  if (!rows.some(({ isAmbiguous }) => isAmbiguous)) return null;
  return {
    messageId,
    rfcMessageId: rows[0]?.rfcMessageId ?? null,
    recipients: rows.map(({ rfcMessageId: _, ...row }) => ({
      ...row,
      response: row.response && redactAddresses(row.response),
    })),
  };
}
