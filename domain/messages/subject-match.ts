import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { type ThreadReferences, toSubjectMatch } from './message-ids.ts';
import { normalizeBaseSubject } from './thread-summary.ts';

export interface Correspondents {
  from: string;
  /** Addresses in To and Cc, without the inbox's own. */
  others: readonly string[];
}

interface SubjectLookup {
  inboxId: string;
  mail: ThreadReferences & { subject: string };
  correspondents: Correspondents;
  at: Date;
}

/** Newest messages of a thread whose recipients count as its correspondents. */
const MAX_READ_MESSAGES = 50;

/**
 * Finds a thread with the same base subject and the same correspondents: the sender takes part in it, and every other
 * address occurs in it.
 */
export async function findThreadBySubject(
  db: Db,
  { inboxId, mail, correspondents, at }: SubjectLookup,
): Promise<string | null> {
  const match = toSubjectMatch({ ...mail, at });
  if (!match) return null;
  const from = correspondents.from.toLowerCase();
  const others = correspondents.others.map((address) => address.toLowerCase());
  const found = await db
    .selectFrom('threads as t')
    .select('t.id')
    .where('inbox_id', '=', inboxId)
    .where('base_subject', '=', normalizeBaseSubject(match.baseSubject))
    .where('last_message_at', '>=', match.since)
    .where('merged_into_id', 'is', null)
    .where('participants', '@>', sql<string[]>`${[from]}::text[]`)
    .where(({ not, exists }) =>
      not(
        exists(sql`(
          select from unnest(${others}::text[]) other
          where other <> all (t.participants) and not exists (
            select from (select "to" || cc || bcc as recipients from messages m where m.thread_id = t.id
                         order by m.id desc limit ${MAX_READ_MESSAGES}) newest, jsonb_array_elements(recipients) entry
            where lower(entry ->> 'email') = other))`),
      ),
    )
    .orderBy('last_message_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found?.id ?? null;
}
