import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { parseTimestamp } from '../../platform/database/serialized-row.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
import type { Thread } from './thread.entity.ts';
import { MAX_LABELS, MAX_PARTICIPANTS } from './thread-summary.ts';

interface SummaryRow {
  count: number;
  hasAttachments: boolean;
  /** In PostgreSQL's text format: the ORM parses times only for entities. */
  lastInboundAt: string | null;
  lastOutboundAt: string | null;
  lastId: string | null;
  preview: string | null;
  labels: string[];
  participants: string[];
}

const HIDDEN_LABELS_ARRAY = `{${HIDDEN_LABELS.join(',')}}`;

/** @param thread SQL for the thread's id. */
const summarySql = (thread: Sql) => sql`
  with shown as (
    select id, direction, from_email, has_attachments, preview, labels, created_at
    from messages where thread_id = ${thread} and not labels && ${HIDDEN_LABELS_ARRAY}::text[]
  )
  select count(*)::int as count, coalesce(bool_or(has_attachments), false) as "hasAttachments",
    max(created_at) filter (where direction = 'inbound') as "lastInboundAt",
    max(created_at) filter (where direction = 'outbound') as "lastOutboundAt",
    (select id from shown order by id desc limit 1) as "lastId",
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
  from shown`;

/**
 * Recomputes the thread's summary after one of its messages was hidden, shown, deleted or lost a label. The caller
 * holds the thread's row lock and has flushed. A thread without visible messages retains its timestamps and is not
 * listed.
 */
export async function refreshThread(em: EntityManager, thread: Thread): Promise<void> {
  const [summary] = await em.execute<SummaryRow[]>(summarySql(sql`${thread.id}`));
  if (!summary) return;
  thread.messageCount = summary.count;
  thread.hasAttachments = summary.hasAttachments;
  thread.lastMessageId = summary.lastId;
  thread.preview = summary.preview ?? '';
  thread.labels = summary.labels;
  thread.participants = summary.participants;
  thread.lastInboundAt = parseTimestamp(summary.lastInboundAt);
  thread.lastOutboundAt = parseTimestamp(summary.lastOutboundAt);
  thread.lastMessageAt = latest(thread.lastInboundAt, thread.lastOutboundAt) ?? thread.lastMessageAt;
}

/** Recomputes the summaries of several threads, whose rows the caller has locked. A merged thread has none. */
export async function refreshThreads(em: EntityManager, threadIds: readonly string[]): Promise<void> {
  if (threadIds.length === 0) return;
  await em.execute(
    sql`update threads t set message_count = s.count, has_attachments = s."hasAttachments", last_message_id = s."lastId",
       preview = coalesce(s.preview, ''), labels = s.labels, participants = s.participants,
       last_inbound_at = s."lastInboundAt", last_outbound_at = s."lastOutboundAt",
       last_message_at = coalesce(greatest(s."lastInboundAt", s."lastOutboundAt"), t.last_message_at),
       updated_at = now()
     from (select w.id as thread_id, summary.* from threads w
           cross join lateral (${summarySql(sql`w.id`)}) summary
           where w.id in (${threadIds}) and w.merged_into_id is null) s
     where t.id = s.thread_id`,
  );
}

function latest(a: Date | null, b: Date | null): Date | null {
  return a && b ? (a > b ? a : b) : (a ?? b);
}
