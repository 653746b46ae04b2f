import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { createReceivedMessage } from '../../domain/inbound/create-received-message.ts';
import { type Receipt, toMessageId } from '../../domain/inbound/receipt.entity.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { emptyInboundMail } from '../../domain/mime/parser/pool.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization } from './organizations.ts';
import { query } from './query.ts';
import { recordingOutbox } from './test-app.ts';

/** The ids that a mail program writes into a reply. */
export const CLIENTS = ['full', 'parent', 'refs', 'tail', 'ends', 'words'] as const;
export type Client = (typeof CLIENTS)[number];

export interface ConversationMessage {
  /** Message-ID without brackets. */
  id: string;
  /** Header fields, with brackets. */
  inReplyTo: string | null;
  references: string[];
  subject: string;
  from: string;
  /** By default only the inbox. */
  to?: string[];
}

/** @param ancestors of the message, oldest first; the last one is its parent. */
export function writeIds(
  client: Client,
  ancestors: readonly string[],
): Pick<ConversationMessage, 'inReplyTo' | 'references'> {
  const chain = ancestors.map((id) => `<${id}>`);
  const parent = chain.at(-1) ?? null;
  if (parent === null) return { inReplyTo: null, references: [] };
  switch (client) {
    case 'full':
      return { inReplyTo: parent, references: chain };
    case 'parent':
      return { inReplyTo: parent, references: [] };
    case 'words':
      return { inReplyTo: `Message of Monday from "A person" ${parent}`, references: [] };
    case 'refs':
      return { inReplyTo: null, references: chain };
    case 'tail':
      return { inReplyTo: null, references: chain.slice(-3) };
    case 'ends':
      return { inReplyTo: parent, references: [...new Set([chain[0] ?? parent, parent])] };
  }
}

export interface ListMessage extends ConversationMessage {
  /** Name of the conversation. */
  conversation: string;
  /** How many times the inbox received it. */
  copies: number;
}

/** Reads `test/fixtures/conversations/mailing-list.txt`, in order of date. */
export function readMailingList(): ListMessage[] {
  const text = readFileSync(new URL('../fixtures/conversations/mailing-list.txt', import.meta.url), 'utf8');
  const ancestorsOf = new Map<string, string[]>();
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, mark, name = '', parent = '', author = '', client, subject = ''] =
        /^([!*]?)(\S+) +(\S+) +(\S+) +(\S+) +(.*)$/.exec(line) ?? [];
      const ancestors =
        parent === '-' ? [] : [...(ancestorsOf.get(parent) ?? []), `${parent}@garden.example`];
      ancestorsOf.set(name, ancestors);
      return {
        id: `${name}@garden.example`,
        conversation: name.replace(/-\d+$/, ''),
        copies: mark === '!' ? 0 : mark === '*' ? 2 : 1,
        subject,
        from: `${author}@garden.example`,
        ...writeIds(client as Client, ancestors),
      };
    });
}

/** A new inbox whose messages arrive without being parsed. */
export async function arrangeConversations(database: Database, given?: Inbox) {
  const inbox = given ?? (await createInbox(database, await createOrganization(database)));
  const { outbox, commands } = recordingOutbox();
  /** @returns the id of the stored message. */
  const arrive = async (
    message: Partial<ConversationMessage>,
    { dmarc = 'pass', isSpam = false, at = new Date() } = {},
  ): Promise<string> => {
    const {
      to = [inbox.email],
      id = null,
      inReplyTo = null,
      references = [],
      subject = '',
      from = 'ada@people.example',
    } = message;
    const receipt = {
      id: newId('receipt'),
      organizationId: inbox.organizationId,
      environmentId: inbox.environmentId,
      inboxId: inbox.id,
      kind: 'mail',
      mailFrom: from,
      rcptTo: inbox.email,
      rawKey: 'raw/none',
      sizeBytes: 1,
      receivedAt: at,
    } as Receipt;
    const mail = {
      ...emptyInboundMail(null),
      extractedText: 'Hello',
      from: { email: from },
      to: to.map((email) => ({ email })),
      messageId: id,
      inReplyTo,
      references,
      subject,
      attachments: [],
    };
    await database.systemTransaction((transaction) =>
      createReceivedMessage(transaction, outbox, receipt, {
        mail,
        authentication: { spf: 'pass', dkim: 'pass', dmarc, arc: 'none', policy: null },
        spam: { verdict: isSpam ? 'spam' : 'ham', score: null },
      }),
    );
    return toMessageId(receipt.id);
  };
  const threadOf = async (messageId: string) => {
    const [row] = await query<{ threadId: string }>(
      database,
      sql`select thread_id as "threadId" from messages where id = ${messageId}`,
    );
    return row?.threadId;
  };
  return {
    inbox,
    outbox,
    commands,
    arrive,
    threadOf,
    readPartition: () => readPartition(database, inbox.id),
  };
}

/** The Message-IDs of the inbox by thread, in an order that can be compared. */
export async function readPartition(database: Database, inboxId: string): Promise<string[][]> {
  const rows = await query<{ ids: string[] }>(
    database,
    sql`select array_agg(distinct rfc_message_id order by rfc_message_id) as ids
     from messages where inbox_id = ${inboxId} group by thread_id order by 1`,
  );
  return rows.map(({ ids }) => ids);
}

/** The connected groups of `items` that share a key. Messages that share none with others are alone. */
export function groupByLinks(items: readonly ConversationMessage[]): string[][] {
  const parentOf = new Map<string, string>();
  const find = (id: string): string => {
    const parent = parentOf.get(id) ?? id;
    return parent === id ? id : find(parent);
  };
  for (const { id, inReplyTo, references } of items)
    for (const [, named = ''] of [inReplyTo ?? '', ...references].join(' ').matchAll(/<([^>]+)>/g))
      parentOf.set(find(named), find(id));
  const groups = Map.groupBy([...new Set(items.map(({ id }) => id))].sort(), find);
  return [...groups.values()].sort((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));
}

/** Pairs of messages in one thread, as a share of those that belong together, and those that do not. */
export function comparePairs(partition: readonly string[][], conversationOf: (id: string) => string) {
  const threadOf = new Map(partition.flatMap((ids, thread) => ids.map((id) => [id, thread] as const)));
  const ids = [...threadOf.keys()];
  const counts = { together: 0, found: 0, false: 0 };
  for (const [index, a] of ids.entries())
    for (const b of ids.slice(index + 1)) {
      const belong = conversationOf(a) === conversationOf(b);
      const joined = threadOf.get(a) === threadOf.get(b);
      counts.together += Number(belong);
      counts.found += Number(belong && joined);
      counts.false += Number(!belong && joined);
    }
  return { recall: counts.found / counts.together, falseJoins: counts.false };
}
