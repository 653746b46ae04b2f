import type { Context } from '../context.ts';
import type { AgentEmail, AgentMessage } from '../sdk.ts';
import { openSession } from '../session.ts';
import { formatTable } from '../terminal/table.ts';
import { findInboxId } from './inbox-argument.ts';
import { MESSAGE_COLUMNS, messageLines } from './message-lines.ts';
import { saveAttachments } from './save-attachments.ts';

export interface ListOptions {
  inbox?: string;
  query?: string;
  direction?: 'inbound' | 'outbound';
  label?: string;
  limit: number;
}

const PAGE_SIZE = 100;

export async function listMessages(context: Context, options: ListOptions): Promise<void> {
  const { client } = await openSession(context);
  const found: AgentMessage[] = [];
  for await (const message of await selectMessages(client, options)) {
    found.push(message);
    if (found.length >= options.limit) break;
  }
  const { output } = context;
  output.answer(found, () =>
    found.length === 0 ? ['No messages.'] : formatTable(found, MESSAGE_COLUMNS, output.width),
  );
}

async function selectMessages(client: AgentEmail, { inbox, query, direction, label, limit }: ListOptions) {
  const filters = { q: query, direction, label, limit: Math.min(PAGE_SIZE, limit), view: 'agent' as const };
  return inbox === undefined
    ? client.messages.listAll(filters)
    : client.messages.list(await findInboxId(client, inbox), filters);
}

export interface ReadOptions {
  /** A folder. */
  save?: string;
  force?: true;
  markdown?: true;
  maxChars?: number;
  offset?: number;
}

export async function readMessage(context: Context, id: string, options: ReadOptions): Promise<void> {
  const { output } = context;
  const { client } = await openSession(context);
  const message = await client.messages.get(id, {
    view: 'agent',
    format: options.markdown ? 'markdown' : undefined,
    max_chars: options.maxChars,
    offset: options.offset,
  });
  const { save, force } = options;
  const saved =
    save === undefined
      ? []
      : await saveAttachments(client, message.attachments ?? [], { folder: save, force: force === true });
  output.answer(save === undefined ? message : { ...message, saved }, () => messageLines(message));
  for (const { path } of saved) output.note(`Saved ${path}`);
}
