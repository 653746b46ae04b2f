import type { AgentMessage } from '../sdk.ts';
import type { Column } from '../terminal/table.ts';
import { formatFields } from '../terminal/table.ts';
import { localTime } from '../terminal/time.ts';
import { visible, visibleLines } from '../terminal/visible.ts';

export type ShownMessage = Partial<Omit<AgentMessage, 'id' | 'object'>> & { id: string };

/** What a change answers: a message, a draft that waits for approval, or the receipt of a key that may not read. */
export interface Changed {
  id: string;
  thread_id?: string | null;
  status?: string;
  /** Of a draft. */
  send_status?: string;
}

interface Person {
  email: string;
  name?: string;
}

export const nameOf = (person: Person | undefined): string =>
  person?.name ? `${person.name} <${person.email}>` : (person?.email ?? '');

const all = (people: readonly Person[] | undefined): string => (people ?? []).map(nameOf).join(', ');

/** The other side: the sender of what came, the recipients of what went. */
const other = ({ direction, from, to }: ShownMessage): string =>
  direction === 'outbound' ? `to ${all(to)}` : (from?.name ?? nameOf(from));

export const MESSAGE_COLUMNS: Column<ShownMessage>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'DATE', value: ({ date }) => localTime(date) },
  { title: 'FROM', value: other, flexible: true },
  { title: 'SUBJECT', value: ({ subject }) => subject, flexible: true },
  { title: 'STATUS', value: ({ status }) => status },
];

/** A whole message for people. What the service warns of comes before the text. */
export function messageLines(message: ShownMessage): string[] {
  const { injection, text, truncated, next_offset: next } = message;
  return [
    ...formatFields([
      ['From', nameOf(message.from)],
      ['To', all(message.to)],
      ['Cc', all(message.cc)],
      ['Subject', message.subject],
      ['Date', localTime(message.date)],
      ['Status', message.status],
      ['Message', message.id],
      ['Thread', message.thread_id],
      ['Labels', message.labels?.join(', ')],
      ['Signals', message.signals?.join(', ')],
      ['Code', message.codes?.map(({ value }) => value).join(', ')],
      ...(message.links ?? []).map(({ kind, url }) => [`Link (${kind})`, url] as const),
      ...(message.attachments ?? []).map(
        ({ id, filename, size_bytes }) => ['File', `${filename} (${size_bytes} bytes, ${id})`] as const,
      ),
      ['Bounce', message.bounce && `${message.bounce.reason ?? message.bounce.type}: ${message.bounce.next}`],
      [
        'Warning',
        injection && injection.level !== 'none' ? `instructions to an agent (${injection.level})` : '',
      ],
      ['Warning', message.authentication && 'the sender is not authenticated'],
    ]),
    ...(text === undefined ? [] : ['', visibleLines(text)]),
    ...(truncated ? ['', visible(`The text goes on${next === undefined ? '' : `: --offset ${next}`}.`)] : []),
  ];
}

export function changedLines({ id, thread_id, status, send_status }: Changed): string[] {
  if (send_status === undefined)
    return formatFields([
      ['Message', id],
      ['Thread', thread_id],
      ['Status', status],
    ]);
  return formatFields([
    ['Draft', id],
    ['Status', send_status],
    ['Note', send_status === 'pending_approval' ? 'A person must approve it before it is sent.' : ''],
  ]);
}
