import { type Static, Type } from 'typebox';
import type { OperationInput } from '../operations.ts';
import { type Answer, defineTool, SENDS, type ToolRun } from '../tool.ts';
import { input, optional, SENT, SENT_MESSAGE, text, texts } from './fields.ts';
import { files, presentSent, refuseLargeFiles } from './outgoing.ts';

const extras = {
  html_body: optional(text()),
  cc: optional(texts()),
  bcc: optional(texts()),
  attachments: files,
  send_at: optional(text('ISO 8601: send later')),
  idempotency_key: optional(
    text('A repetition with it sends once; default: the same call within 10 minutes'),
  ),
};

export const sendTools = [
  defineTool({
    name: 'send_message',
    description: 'Send a message from an inbox.',
    operations: ['messages.send'],
    input: input({
      inbox_id: text(),
      to: texts('"ada@example.com" or "Ada <ada@example.com>"'),
      subject: text(),
      text_body: optional(text()),
      ...extras,
    }),
    output: SENT,
    annotations: SENDS,
    run: ({ inbox_id: inboxId, ...args }, run) => send('messages.send', { inboxId }, args, run),
  }),
  defineTool({
    name: 'reply',
    description: 'Reply to a message, in its thread; the original is quoted.',
    operations: ['messages.reply'],
    input: input({
      message_id: text(),
      text_body: optional(text()),
      reply_all: optional(Type.Boolean()),
      ...extras,
    }),
    output: SENT,
    annotations: SENDS,
    run: ({ message_id: id, ...args }, run) => send('messages.reply', { id }, args, run),
  }),
  defineTool({
    name: 'forward',
    description: 'Forward a message with its files.',
    operations: ['messages.forward'],
    input: input({
      message_id: text(),
      to: texts(),
      text_body: optional(text()),
      include_attachments: optional(Type.Boolean()),
      ...extras,
    }),
    output: SENT,
    annotations: SENDS,
    run: ({ message_id: id, ...args }, run) => send('messages.forward', { id }, args, run),
  }),
  defineTool({
    name: 'cancel_send',
    description: 'Cancel a message that has not left yet. A scheduled one is a draft: update or delete it.',
    operations: ['messages.cancel'],
    input: input({ message_id: text() }),
    output: SENT_MESSAGE,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async run({ message_id: id }, { call }) {
      return (await call('messages.cancel', { params: { id }, query: { view: 'agent' } })).body;
    },
  }),
];

interface SendArguments {
  attachments?: Static<typeof files>;
  idempotency_key?: string;
}

async function send(
  operationId: string,
  params: NonNullable<OperationInput['params']>,
  { idempotency_key: idempotencyKey, ...body }: SendArguments,
  { call }: ToolRun,
): Promise<Answer> {
  refuseLargeFiles(body.attachments);
  const sent = await call(operationId, {
    params,
    query: { view: 'agent' },
    body,
    idempotencyKey,
    derivesKey: true,
  });
  return presentSent(sent);
}
