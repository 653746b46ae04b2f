import type { EntityManager } from '@mikro-orm/postgresql';
import { HIDDEN_LABELS } from '../messages/hidden-labels.ts';
import type { Thread } from './thread.entity.ts';
import { MAX_LABELS, MAX_PARTICIPANTS } from './thread-summary.ts';

interface Summary {
  count: number;
  has_attachments: boolean;
  /** As PostgreSQL writes times: the ORM reads them only into entities. */
  last_inbound_at: string | null;
  last_outbound_at: string | null;
  last_id: string | null;
  preview: string | null;
  labels: string[];
  participants: string[];
}

const SUMMARY = `
  with shown as (
    select id, direction, from_email, has_attachments, preview, labels, created_at
    from messages where thread_id = ? and not labels && ?::text[]
  )
  select count(*)::int as count, coalesce(bool_or(has_attachments), false) as has_attachments,
    max(created_at) filter (where direction = 'inbound') as last_inbound_at,
    max(created_at) filter (where direction = 'outbound') as last_outbound_at,
    (select id from shown order by id desc limit 1) as last_id,
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
 * Writes the thread's summary anew after a message of it was hidden, shown or deleted, or lost a label. The caller
 * holds the thread's row lock, and has flushed. A thread that shows no message keeps its times, and no list shows it.
 */
export async function refreshThread(em: EntityManager, thread: Thread): Promise<void> {
  const [summary] = await em.execute<Summary[]>(SUMMARY, [thread.id, `{${HIDDEN_LABELS.join(',')}}`]);
  if (!summary) return;
  thread.messageCount = summary.count;
  thread.hasAttachments = summary.has_attachments;
  thread.lastMessageId = summary.last_id;
  thread.preview = summary.preview ?? '';
  thread.labels = summary.labels;
  thread.participants = summary.participants;
  thread.lastInboundAt = timeOf(summary.last_inbound_at);
  thread.lastOutboundAt = timeOf(summary.last_outbound_at);
  thread.lastMessageAt = latest(thread.lastInboundAt, thread.lastOutboundAt) ?? thread.lastMessageAt;
}

function timeOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

function latest(a: Date | null, b: Date | null): Date | null {
  return a && b ? (a > b ? a : b) : (a ?? b);
}
