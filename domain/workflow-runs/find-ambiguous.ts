import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { buildSendStart } from '../outbound/workflow-commands.ts';

export type AmbiguousMessage = Parameters<typeof buildSendStart>[0] & {
  rfcMessageId: string | null;
  /** Numbers of the recipients whose outcome is unknown, by their address in lower case. */
  numbers: Record<string, number>;
};

/**
 * Finds messages with an unknown outcome by their ids in the relay's log.
 *
 * @param keys message ids, or Message-IDs without angle brackets.
 */
export const findAmbiguousMessages = (db: Db, keys: readonly string[]): Promise<AmbiguousMessage[]> =>
  db
    .selectFrom('messages as m')
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('send_attempts as a')
          .innerJoin('message_recipients as r', (join) =>
            join.onRef('r.message_id', '=', 'a.message_id').onRef('r.position', '=', 'a.position'),
          )
          .select(
            sql<Record<string, number> | null>`jsonb_object_agg(lower(r.email), r.position)`.as('numbers'),
          )
          .whereRef('a.message_id', '=', 'm.id')
          .where('a.state', '=', 'ambiguous')
          .as('ambiguous'),
      (join) => join.on('ambiguous.numbers', 'is not', null),
    )
    .select([
      'm.id',
      'm.org_id as organizationId',
      'm.env_id as environmentId',
      'm.inbox_id as inboxId',
      'm.thread_id as threadId',
      'm.rfc_message_id as rfcMessageId',
      'ambiguous.numbers',
    ])
    .where('m.status', '=', anyOf(['sending', 'needs_attention'] as const))
    .where((eb) => eb.or([eb('m.id', '=', anyOf(keys)), eb('m.rfc_message_id', '=', anyOf(keys))]))
    .$narrowType<{ numbers: Record<string, number> }>()
    .execute();

/** The recipients of a message that have no final status. */
export interface OpenRecipients {
  /** Numbers of the recipients for whom it is unknown whether the relay accepted the message. */
  ambiguous: number[];
  /** Whether something can still be transmitted or canceled. */
  hasUnsent: boolean;
}

/** For staff and workers. @returns by message id; without messages that do not exist. */
export async function findOpenRecipients(
  db: Db,
  messageIds: readonly string[],
): Promise<Map<string, OpenRecipients>> {
  if (messageIds.length === 0) return new Map();
  const rows = await db
    .selectFrom((from) =>
      from
        .selectFrom('message_recipients as r')
        .select((eb) => [
          'r.message_id',
          'r.position',
          eb('r.status', '=', anyOf(['pending', 'deferred'] as const)).as('is_open'),
          eb
            .exists(
              eb
                .selectFrom('send_attempts as a')
                .select('a.position')
                .whereRef('a.message_id', '=', 'r.message_id')
                .whereRef('a.position', '=', 'r.position')
                .where('a.state', '=', 'ambiguous'),
            )
            .as('is_ambiguous'),
        ])
        .where('r.message_id', '=', anyOf(messageIds))
        .as('r'),
    )
    .select([
      'r.message_id as messageId',
      sql<boolean>`bool_or(r.is_open and not r.is_ambiguous)`.as('hasUnsent'),
      sql<number[]>`coalesce(
        array_agg(r.position order by r.position) filter (where r.is_open and r.is_ambiguous), '{}')`.as(
        'ambiguous',
      ),
    ])
    .groupBy('r.message_id')
    .execute();
  return new Map(rows.map(({ messageId, ...open }) => [messageId, open]));
}
