import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { IS_VISIBLE } from './hidden-labels.ts';
import { MAX_LABELS, MAX_PARTICIPANTS } from './thread-summary.ts';

interface Summary {
  message_count: number;
  has_attachments: boolean;
  last_inbound_at: Date | null;
  last_outbound_at: Date | null;
  last_message_id: string | null;
  preview: string | null;
  labels: string[];
  participants: string[];
}

/** The summary of the thread `locked`. */
const summary = sql<Summary>`(
  with shown as (
    select id, direction, from_email, has_attachments, preview, labels, created_at
    from messages where thread_id = locked.id and ${IS_VISIBLE}
  )
  select count(*) as message_count, coalesce(bool_or(has_attachments), false) as has_attachments,
    max(created_at) filter (where direction = 'inbound') as last_inbound_at,
    max(created_at) filter (where direction = 'outbound') as last_outbound_at,
    (select id from shown order by id desc limit 1) as last_message_id,
    (select preview from shown order by id desc limit 1) as preview,
    array(select distinct label from shown, unnest(labels) label order by label limit ${MAX_LABELS}) as labels,
    array(
      select lower(email) from (
        select from_email as email, id, 0 as position from shown where direction = 'inbound' and from_email <> ''
        union all
        select r.email, m.id, r.position from shown m join message_recipients r on r.message_id = m.id
        where m.direction = 'outbound'
      ) correspondent
      group by lower(email) order by min(id), min(position) limit ${MAX_PARTICIPANTS}
    ) as participants
  from shown)`;

/**
 * Recomputes the summaries of threads after one of their messages was hidden, shown, deleted or lost a label. The caller has
 * locked the threads. A merged thread has no summary. A thread without visible messages retains its timestamps and is not
 * listed.
 */
export async function refreshThreads(db: Db, threadIds: readonly string[]): Promise<void> {
  if (threadIds.length === 0) return;
  await db
    .updateTable('threads')
    .from((eb) =>
      eb
        .selectFrom('threads as locked')
        .innerJoinLateral(summary.as('summary'), (join) => join.onTrue())
        .selectAll('summary')
        .select('locked.id')
        .where('locked.id', '=', anyOf(threadIds))
        .where('locked.merged_into_id', 'is', null)
        .as('fresh'),
    )
    .set((eb) => ({
      message_count: eb.ref('fresh.message_count'),
      has_attachments: eb.ref('fresh.has_attachments'),
      last_message_id: eb.ref('fresh.last_message_id'),
      preview: sql`coalesce(fresh.preview, '')`,
      labels: eb.ref('fresh.labels'),
      participants: eb.ref('fresh.participants'),
      last_inbound_at: eb.ref('fresh.last_inbound_at'),
      last_outbound_at: eb.ref('fresh.last_outbound_at'),
      last_message_at: sql`coalesce(greatest(fresh.last_inbound_at, fresh.last_outbound_at), threads.last_message_at)`,
      updated_at: sql`now()`,
    }))
    .whereRef('threads.id', '=', 'fresh.id')
    .execute();
}
