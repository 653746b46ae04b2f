import { Type } from 'typebox';
import { type Answer, defineTool, OperationRefusal, READS, SENDS } from '../tool.ts';
import {
  booleans,
  DEFAULT_LIMIT,
  enumOf,
  input,
  integer,
  optional,
  PAGE,
  page,
  SENT,
  strings,
  stringsOrNull,
  text,
  texts,
} from './fields.ts';
import { DRAFT, files, LISTED_CHARACTERS, presentSent, refuseLargeFiles, shortenDraft } from './outgoing.ts';

const content = {
  to: optional(texts()),
  cc: optional(texts()),
  bcc: optional(texts()),
  subject: optional(text()),
  text_body: optional(text()),
  html_body: optional(text()),
  attachments: files,
  in_reply_to: optional(text('Message id')),
};
const CHANGES = { readOnlyHint: false, destructiveHint: false, openWorldHint: false } as const;

export const draftTools = [
  defineTool({
    name: 'create_draft',
    description: 'Create a draft: nothing is sent, unless at send_at.',
    operations: ['drafts.create'],
    input: input({ inbox_id: text(), ...content, send_at: optional(text()) }),
    output: DRAFT,
    annotations: CHANGES,
    async run({ inbox_id: inboxId, ...body }, { call }) {
      refuseLargeFiles(body.attachments);
      return shortenDraft((await call('drafts.create', { params: { inboxId }, body })).body);
    },
  }),
  defineTool({
    name: 'update_draft',
    description: 'Change fields of a draft; the others stay. One that waits for approval starts again.',
    operations: ['drafts.update'],
    input: input({
      draft_id: text(),
      ...content,
      send_at: optional(Type.Union([Type.String(), Type.Null()], { description: 'null: do not send' })),
    }),
    output: DRAFT,
    annotations: { ...CHANGES, idempotentHint: true },
    async run({ draft_id: id, ...body }, { call }) {
      refuseLargeFiles(body.attachments);
      return shortenDraft((await call('drafts.update', { params: { id }, body })).body);
    },
  }),
  defineTool({
    name: 'get_draft',
    description:
      'Read a draft. wait_seconds (max. 50): wait until a person decides or it ends, and tell the outcome.',
    operations: ['drafts.get', 'drafts.wait'],
    input: input({ draft_id: text(), wait_seconds: optional(integer()) }),
    output: {
      ...DRAFT,
      ...strings('draft_id', 'outcome'),
      ...stringsOrNull('message_id', 'send_at', 'send_error', 'note'),
      ...booleans('timed_out'),
    },
    annotations: READS,
    async run({ draft_id: id, wait_seconds: seconds }, { call, wait }) {
      if (seconds !== undefined) return (await wait('drafts.wait', { params: { id } }, seconds)).body;
      return shortenDraft((await call('drafts.get', { params: { id } })).body);
    },
  }),
  defineTool({
    name: 'list_drafts',
    description: 'List unsent drafts.',
    operations: ['drafts.listAll'],
    input: input({
      inbox_id: optional(text()),
      send_status: optional(enumOf(['draft', 'scheduled', 'pending_approval', 'rejected', 'failed'])),
      ...page,
    }),
    output: PAGE,
    annotations: READS,
    async run({ limit = DEFAULT_LIMIT, ...query }, { call }) {
      const { body } = await call('drafts.listAll', { query: { ...query, limit } });
      return {
        ...body,
        data: (body.data as Answer[]).map((draft) => shortenDraft(draft, LISTED_CHARACTERS)),
      };
    },
  }),
  defineTool({
    name: 'send_draft',
    description: 'Send a draft.',
    operations: ['drafts.send'],
    input: input({
      draft_id: text(),
      version: optional(integer('Refuse another version')),
      idempotency_key: optional(text()),
    }),
    output: SENT,
    annotations: { ...SENDS, idempotentHint: true },
    async run({ draft_id: id, version, idempotency_key: idempotencyKey }, { call }) {
      const body = version === undefined ? {} : { version };
      try {
        const query = { view: 'agent' };
        return presentSent(await call('drafts.send', { params: { id }, query, body, idempotencyKey }));
      } catch (error) {
        return presentEarlierSend(error);
      }
    },
  }),
  defineTool({
    name: 'delete_draft',
    description: 'Delete a draft; a scheduled one is not sent.',
    operations: ['drafts.delete'],
    input: input({ draft_id: text() }),
    output: strings('object', 'id'),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async run({ draft_id: id }, { call }) {
      await call('drafts.delete', { params: { id } });
      return { object: 'deleted_draft', id };
    },
  }),
];

/** A draft is sent once: a host that repeats the call gets the message that it became. */
function presentEarlierSend(error: unknown): Answer {
  const messageId = error instanceof OperationRefusal ? error.result.body.message_id : undefined;
  if (messageId === undefined) throw error;
  return {
    object: 'receipt',
    id: messageId,
    replayed: true,
    note: 'The draft was sent before, as this message. To send it once more, use send_message.',
  };
}
