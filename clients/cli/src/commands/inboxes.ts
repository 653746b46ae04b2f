import type { Context } from '../context.ts';
import type { Inbox } from '../sdk.ts';
import { openSession } from '../session.ts';
import { type Column, formatFields, formatTable } from '../terminal/table.ts';
import { findInboxId } from './inbox-argument.ts';

type ShownInbox = Partial<Inbox> & { id: string };

const COLUMNS: Column<Inbox>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'ADDRESS', value: ({ email }) => email, flexible: true },
  { title: 'NAME', value: ({ display_name }) => display_name, flexible: true },
  { title: 'STATUS', value: ({ status, send_paused }) => (send_paused ? `${status}, paused` : status) },
];

const linesOf = (inbox: ShownInbox): string[] =>
  formatFields([
    ['Inbox', inbox.id],
    ['Address', inbox.email],
    ['Name', inbox.display_name],
    ['Aliases', inbox.aliases?.join(', ')],
    ['Client id', inbox.client_id],
    ['Status', inbox.status],
    ['Sends', inbox.send_paused ? `paused: ${inbox.send_paused_reason ?? ''}` : ''],
  ]);

export async function listInboxes(context: Context, { limit }: { limit: number }): Promise<void> {
  const { client } = await openSession(context);
  const inboxes: Inbox[] = [];
  for await (const inbox of client.inboxes.list({ limit: Math.min(100, limit) })) {
    inboxes.push(inbox);
    if (inboxes.length >= limit) break;
  }
  const { output } = context;
  output.answer(inboxes, () =>
    inboxes.length === 0 ? ['No inboxes.'] : formatTable(inboxes, COLUMNS, output.width),
  );
}

export interface CreateInboxOptions {
  username?: string;
  domain?: string;
  displayName?: string;
  clientId?: string;
}

export async function createInbox(context: Context, options: CreateInboxOptions): Promise<void> {
  const { client } = await openSession(context);
  const { username, domain, displayName: display_name, clientId: client_id } = options;
  const inbox = await client.inboxes.create({ username, domain, display_name, client_id });
  context.output.answer(inbox, () => linesOf(inbox));
}

export async function showInbox(context: Context, name: string): Promise<void> {
  const { client } = await openSession(context);
  const inbox = await client.inboxes.get(await findInboxId(client, name));
  context.output.answer(inbox, () => linesOf(inbox));
}

export async function pauseInbox(
  context: Context,
  name: string,
  { reason }: { reason: string },
): Promise<void> {
  const { client } = await openSession(context);
  const inbox = await client.inboxes.pause(await findInboxId(client, name), { reason });
  context.output.answer(inbox, () => linesOf(inbox));
}

export async function resumeInbox(context: Context, name: string): Promise<void> {
  const { client } = await openSession(context);
  const inbox = await client.inboxes.resume(await findInboxId(client, name));
  context.output.answer(inbox, () => linesOf(inbox));
}
