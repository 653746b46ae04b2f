import { type Static, Type } from 'typebox';
import type { Thread } from '../../domain/messages/thread.entity.ts';
import { MAX_THREAD_MESSAGES, type ThreadDetails } from '../../domain/messages/thread.service.ts';
import { id, nullableText, nullableTimestamp, ref, resource, text, timestamp } from '../schemas.ts';
import { MessageSummary, presentSummary } from './messages.schemas.ts';

const fields = {
  id: id('Thread id (thr_…).'),
  inbox_id: id('Inbox the thread belongs to.'),
  subject: text(1_000_000),
  preview: text(1024, { description: 'Preview of the last message.' }),
  labels: Type.Array(text(255), { maxItems: 1000 }),
  participants: Type.Array(text(1024), {
    maxItems: 100,
    description: 'Addresses of the other participants, without the inbox’s own.',
  }),
  message_count: Type.Integer({ minimum: 0 }),
  last_message_id: nullableText(128),
  last_message_at: timestamp(),
  last_inbound_at: nullableTimestamp(),
  last_outbound_at: nullableTimestamp(),
  has_attachments: Type.Boolean(),
};

/** A thread in a list. */
export const ThreadSummary = resource('thread', fields, { $id: 'ThreadSummary', title: 'ThreadSummary' });

export const ThreadRecord = resource(
  'thread',
  {
    ...fields,
    messages: Type.Array(ref(MessageSummary), {
      maxItems: MAX_THREAD_MESSAGES,
      description: `The newest ${MAX_THREAD_MESSAGES}, up to 4 MiB, oldest first.`,
    }),
  },
  { $id: 'Thread', title: 'Thread' },
);

export function presentThread(thread: Thread): Static<typeof ThreadSummary> {
  return {
    object: 'thread',
    id: thread.id,
    inbox_id: thread.inboxId,
    subject: thread.subject,
    preview: thread.preview,
    labels: thread.labels,
    participants: thread.participants,
    message_count: thread.messageCount,
    last_message_id: thread.lastMessageId,
    last_message_at: thread.lastMessageAt.toISOString(),
    last_inbound_at: thread.lastInboundAt?.toISOString() ?? null,
    last_outbound_at: thread.lastOutboundAt?.toISOString() ?? null,
    has_attachments: thread.hasAttachments,
  };
}

export function presentThreadDetails({ thread, messages }: ThreadDetails): Static<typeof ThreadRecord> {
  return { ...presentThread(thread), messages: messages.map(presentSummary) };
}
