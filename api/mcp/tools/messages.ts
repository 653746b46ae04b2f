import type { Static } from 'typebox';
import { defineTool, READS, type ToolRun } from '../tool.ts';
import {
  arrays,
  booleans,
  DEFAULT_LIMIT,
  enumOf,
  input,
  integer,
  integers,
  integersOrNull,
  MESSAGE,
  optional,
  PAGE,
  page,
  strings,
  stringsOrNull,
  text,
  textPart,
  texts,
} from './fields.ts';

const filters = {
  inbox_id: optional(text('Default: every inbox')),
  direction: optional(enumOf(['inbound', 'outbound'])),
  label: optional(text()),
  from: optional(text()),
  to: optional(text()),
  after: optional(text('ISO 8601')),
  before: optional(text()),
  ...page,
};
const Filters = input(filters);
type Filters = Static<typeof Filters>;

/** One operation lists an inbox, the other all of them. */
async function list({ inbox_id: inboxId, limit = DEFAULT_LIMIT, ...rest }: Filters, { call }: ToolRun) {
  const query = { ...rest, limit, view: 'agent' };
  if (inboxId === undefined) return (await call('messages.listAll', { query })).body;
  return (await call('messages.list', { params: { inboxId }, query })).body;
}

/** Fields of the text of an attachment, and of its link. */
const ATTACHMENT = {
  ...strings('object', 'id', 'attachment_id', 'filename', 'content_type', 'sha256', 'disposition', 'format'),
  ...strings('text', 'download_url', 'expires_at'),
  ...stringsOrNull('content_id'),
  ...integers('size_bytes', 'total_chars', 'offset'),
  ...integersOrNull('next_offset'),
  ...booleans('truncated'),
  ...arrays('left_out'),
};

export const messageTools = [
  defineTool({
    name: 'list_messages',
    description: 'List messages, newest first, each with the first 500 characters of its text.',
    operations: ['messages.listAll', 'messages.list'],
    input: Filters,
    output: PAGE,
    annotations: READS,
    run: list,
  }),
  defineTool({
    name: 'search_messages',
    description: 'Search messages by words.',
    operations: ['messages.listAll', 'messages.list'],
    input: input({ q: text(), ...filters }),
    output: PAGE,
    annotations: READS,
    run: list,
  }),
  defineTool({
    name: 'get_message',
    description: 'Read a message: its new text, codes, links and attachments.',
    operations: ['messages.get'],
    input: input({
      message_id: text(),
      ...textPart,
      format: optional(enumOf(['text', 'markdown'])),
      links: optional(enumOf(['key', 'all'])),
    }),
    output: MESSAGE,
    annotations: READS,
    async run({ message_id: id, ...query }, { call }) {
      return (await call('messages.get', { params: { id }, query: { ...query, view: 'agent' } })).body;
    },
  }),
  defineTool({
    name: 'update_labels',
    description: 'Add and remove labels of up to 100 messages.',
    operations: ['messages.changeLabels'],
    input: input({ message_ids: texts(), add: optional(texts()), remove: optional(texts()) }),
    output: { ...strings('object'), ...arrays('data') },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    async run({ message_ids: ids, ...changes }, { call }) {
      return (await call('messages.changeLabels', { body: { ids, ...changes } })).body;
    },
  }),
  defineTool({
    name: 'get_attachment',
    description: 'Read an attachment as text, or get a download link.',
    operations: ['attachments.text', 'attachments.get'],
    input: input({ attachment_id: text(), as: optional(enumOf(['text', 'link'])), ...textPart }),
    output: ATTACHMENT,
    annotations: READS,
    async run({ attachment_id: id, as = 'text', ...part }, { call }) {
      if (as === 'link') return (await call('attachments.get', { params: { id } })).body;
      return (await call('attachments.text', { params: { id }, query: part })).body;
    },
  }),
  defineTool({
    name: 'delivery_status',
    description:
      'What became of a sent message, for each recipient. wait_seconds (max. 50): wait for the outcome.',
    operations: ['messages.get', 'messages.waitUntilSettled'],
    input: input({ message_id: text(), wait_seconds: optional(integer()) }),
    output: {
      ...strings('object', 'message_id', 'status'),
      ...arrays('recipients'),
      ...booleans('timed_out'),
    },
    annotations: READS,
    async run({ message_id: id, wait_seconds: seconds }, { call, wait }) {
      const { body } =
        seconds === undefined
          ? await call('messages.get', { params: { id } })
          : await wait('messages.waitUntilSettled', { params: { id } }, seconds);
      return body.timed_out === true ? body : presentStatus(body);
    },
  }),
];

function presentStatus({ id, status, recipients }: Record<string, unknown>): Record<string, unknown> {
  return { object: 'delivery_status', message_id: id, status, recipients };
}
