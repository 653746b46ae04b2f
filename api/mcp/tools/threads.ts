import { defineTool, READS } from '../tool.ts';
import {
  arrays,
  booleans,
  DEFAULT_LIMIT,
  input,
  integers,
  optional,
  PAGE,
  page,
  strings,
  stringsOrNull,
  text,
} from './fields.ts';

const THREAD = {
  ...strings('object', 'id', 'inbox_id', 'subject', 'preview', 'last_message_at'),
  ...stringsOrNull('last_message_id', 'last_inbound_at', 'last_outbound_at'),
  ...arrays('labels', 'participants', 'messages'),
  ...integers('message_count'),
  ...booleans('has_attachments'),
};

export const threadTools = [
  defineTool({
    name: 'list_threads',
    description: 'List threads, the last active first.',
    operations: ['threads.listAll', 'threads.list'],
    input: input({ inbox_id: optional(text('Default: every inbox')), ...page }),
    output: PAGE,
    annotations: READS,
    async run({ inbox_id: inboxId, limit = DEFAULT_LIMIT, cursor }, { call }) {
      const query = { limit, cursor };
      if (inboxId === undefined) return (await call('threads.listAll', { query })).body;
      return (await call('threads.list', { params: { inboxId }, query })).body;
    },
  }),
  defineTool({
    name: 'get_thread',
    description: 'A thread with its newest messages, each with the first 500 characters of its text.',
    operations: ['threads.get'],
    input: input({ thread_id: text() }),
    output: THREAD,
    annotations: READS,
    async run({ thread_id: id }, { call }) {
      return (await call('threads.get', { params: { id }, query: { view: 'agent' } })).body;
    },
  }),
];
