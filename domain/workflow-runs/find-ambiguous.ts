import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { buildSendStart } from '../outbound/send.service.ts';

export type AmbiguousMessage = Parameters<typeof buildSendStart>[0] & {
  rfcMessageId: string | null;
  /** Numbers of the recipients whose outcome is unknown, by their address in lower case. */
  numbers: Record<string, number>;
};

/**
 * Finds the messages with an unknown outcome by what the relay's log has of them.
 *
 * @param keys message ids, or Message-IDs without angle brackets. Not empty.
 */
export function findAmbiguousMessages(
  database: Database,
  keys: readonly string[],
): Promise<AmbiguousMessage[]> {
  return database.query<AmbiguousMessage>(
    sql`select m.id, m.org_id as "organizationId", m.env_id as "environmentId", m.inbox_id as "inboxId",
       m.thread_id as "threadId", m.rfc_message_id as "rfcMessageId", ambiguous.numbers
     from messages m
     join lateral (
       select jsonb_object_agg(lower(r.email), r.position) as numbers
       from send_attempts a join message_recipients r on r.message_id = a.message_id and r.position = a.position
       where a.message_id = m.id and a.state = 'ambiguous') ambiguous on ambiguous.numbers is not null
     where m.status in ('sending', 'needs_attention') and (m.id in (${[...keys]}) or m.rfc_message_id in (${[...keys]}))`,
  );
}

/** The recipients of a message that have no final status. */
export interface OpenRecipients {
  /** Numbers of those for whom it is unknown whether the relay accepted the message. */
  ambiguous: number[];
  /** Something may still be transmitted, or canceled. */
  hasUnsent: boolean;
}

/** For staff and workers. @returns by message id; without messages that do not exist. */
export async function findOpenRecipients(
  em: EntityManager,
  messageIds: readonly string[],
): Promise<Map<string, OpenRecipients>> {
  if (messageIds.length === 0) return new Map();
  const rows = await em.execute<(OpenRecipients & { messageId: string })[]>(sql`
    select r.message_id as "messageId", bool_or(r.is_open and not r.is_ambiguous) as "hasUnsent",
      coalesce(jsonb_agg(r.position order by r.position) filter (where r.is_open and r.is_ambiguous), '[]') as ambiguous
    from (
      select r.message_id, r.position, r.status in ('pending', 'deferred') as is_open,
        exists (
          select from send_attempts a
          where a.message_id = r.message_id and a.position = r.position and a.state = 'ambiguous') as is_ambiguous
      from message_recipients r where r.message_id in (${[...messageIds]})) r
    group by r.message_id`);
  return new Map(rows.map(({ messageId, ...open }) => [messageId, open]));
}
