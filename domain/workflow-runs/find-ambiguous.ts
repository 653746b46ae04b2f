import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { buildSendStart } from '../outbound/create-outbound-message.ts';

export type AmbiguousMessage = Parameters<typeof buildSendStart>[0] & { rfcMessageId: string | null };

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
       m.thread_id as "threadId", m.rfc_message_id as "rfcMessageId"
     from messages m
     where m.status in ('sending', 'needs_attention') and (m.id in (${[...keys]}) or m.rfc_message_id in (${[...keys]}))
       and exists (select from send_attempts a where a.message_id = m.id and a.state = 'ambiguous')`,
  );
}
