import type { Context } from '../context.ts';
import type { Draft } from '../sdk.ts';
import { openSession } from '../session.ts';
import { type Column, formatFields, formatTable } from '../terminal/table.ts';
import { localTime } from '../terminal/time.ts';
import { visibleLines } from '../terminal/visible.ts';
import { readBody, readFiles } from './compose.ts';
import { findInboxId } from './inbox-argument.ts';
import { nameOf } from './message-lines.ts';
import { finish, type SendOptions } from './send.ts';

const COLUMNS: Column<Draft>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'CHANGED', value: ({ updated_at }) => localTime(updated_at) },
  { title: 'TO', value: ({ to }) => to.map(nameOf).join(', '), flexible: true },
  { title: 'SUBJECT', value: ({ subject }) => subject, flexible: true },
  { title: 'STATUS', value: ({ send_status }) => send_status },
];

const linesOf = (draft: Partial<Draft> & { id: string }): string[] => [
  ...formatFields([
    ['Draft', draft.id],
    ['To', draft.to?.map(nameOf).join(', ')],
    ['Cc', draft.cc?.map(nameOf).join(', ')],
    ['Bcc', draft.bcc?.map(nameOf).join(', ')],
    ['Subject', draft.subject],
    ['Status', draft.send_status],
    ['Error', draft.send_error],
    ['Send at', localTime(draft.send_at)],
    ['Version', draft.version],
  ]),
  ...(draft.text_body ? ['', visibleLines(draft.text_body)] : []),
];

export async function listDrafts(
  context: Context,
  { inbox, limit }: { inbox?: string; limit: number },
): Promise<void> {
  const { client } = await openSession(context);
  const inbox_id = inbox === undefined ? undefined : await findInboxId(client, inbox);
  const drafts: Draft[] = [];
  for await (const draft of client.drafts.listAll({ inbox_id, limit: Math.min(100, limit) })) {
    drafts.push(draft);
    if (drafts.length >= limit) break;
  }
  const { output } = context;
  output.answer(drafts, () =>
    drafts.length === 0 ? ['No drafts.'] : formatTable(drafts, COLUMNS, output.width),
  );
}

export async function showDraft(context: Context, id: string): Promise<void> {
  const { client } = await openSession(context);
  const draft = await client.drafts.get(id);
  context.output.answer(draft, () => linesOf(draft));
}

export type CreateDraftOptions = Omit<SendOptions, 'to' | 'wait' | 'idempotencyKey'> & { to?: string[] };

export async function createDraft(context: Context, options: CreateDraftOptions): Promise<void> {
  const body = await readBody(context, options);
  const files = await readFiles(options.attach);
  const { client } = await openSession(context);
  const inboxId = await findInboxId(client, options.from);
  const { to, cc, bcc, replyTo: reply_to, subject, at: send_at } = options;
  const attachments = await client.attach(inboxId, files);
  const fields = { to, cc, bcc, reply_to, subject, send_at, ...body };
  const draft = await client.drafts.create(inboxId, {
    ...fields,
    ...(files.length > 0 ? { attachments } : {}),
  });
  context.output.answer(draft, () => linesOf(draft));
}

export async function sendDraft(
  context: Context,
  id: string,
  { idempotencyKey, wait }: { idempotencyKey?: string; wait?: number },
): Promise<void> {
  const { client } = await openSession(context);
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const sent = await client.drafts.send(id, { view: 'agent' }, options);
  await finish(context, client, sent, wait);
}

export async function deleteDraft(context: Context, id: string): Promise<void> {
  const { client } = await openSession(context);
  await client.drafts.delete(id);
  context.output.answer({ object: 'draft', id, deleted: true }, () => [`Deleted ${id}.`]);
}
