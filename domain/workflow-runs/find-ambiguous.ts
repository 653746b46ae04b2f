import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { buildSendStart } from '../outbound/create-outbound-message.ts';

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
