import { raw, sql } from '@mikro-orm/core';
import { findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { type Message, MessageEntity } from './message.entity.ts';

/** How much of each message a list shows: `summary` has the new text, `full` the bodies and headers too. */
export const MESSAGE_VIEWS = ['compact', 'summary', 'full'] as const;
export type MessageView = (typeof MESSAGE_VIEWS)[number];

/** A page ends before the message that would exceed this, so that neither process nor client holds much more. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

const TEXTS = {
  compact: [],
  summary: ['extractedText'],
  full: ['extractedText', 'textBody', 'htmlBody', 'hiddenText', 'headers'],
} as const satisfies Record<MessageView, readonly (keyof Message)[]>;

/** PostgreSQL knows the length of a text that is stored out of line without reading it. */
const SUBJECT_BYTES = 'octet_length(subject)';
const SUMMARY_BYTES = `${SUBJECT_BYTES} + coalesce(octet_length(extracted_text), 0)
  + 2 * (octet_length("to"::text) + octet_length(cc::text) + octet_length(bcc::text))
  + octet_length(array_to_string(reference_ids, ' '))`;
const BYTES: Record<MessageView, string> = {
  compact: SUBJECT_BYTES,
  summary: SUMMARY_BYTES,
  full: `${SUMMARY_BYTES} + coalesce(octet_length(text_body), 0) + coalesce(octet_length(html_body), 0)
    + coalesce(octet_length(hidden_text), 0) + octet_length(headers::text)`,
};

/**
 * Loads the texts that the view shows.
 *
 * @returns the messages up to {@link MAX_PAGE_BYTES}, at least one.
 */
export async function loadView(
  reader: RowReader,
  messages: Row<Message>[],
  view: MessageView,
): Promise<Row<Message>[]> {
  const shown = await limitBytes(reader, messages, view);
  if (TEXTS[view].length === 0 || shown.length === 0) return shown;
  const complete = await findRows(reader, MessageEntity, {
    where: { id: { $in: shown.map(({ id }) => id) } },
    populate: TEXTS[view],
  });
  const byId = new Map(complete.map((message) => [message.id, message]));
  // A message that was deleted since is left out.
  return shown.map(({ id }) => byId.get(id)).filter((message) => message !== undefined);
}

async function limitBytes(
  reader: RowReader,
  messages: Row<Message>[],
  view: MessageView,
): Promise<Row<Message>[]> {
  if (messages.length < 2) return messages;
  const ids = messages.map(({ id }) => id);
  const rows = await reader.execute<{ id: string; bytes: number }[]>(
    sql`select id, (${raw(BYTES[view])})::float8 as bytes from messages where id in (${ids})`,
  );
  const bytesById = new Map(rows.map(({ id, bytes }) => [id, bytes]));
  let total = 0;
  const end = messages.findIndex(({ id }) => {
    total += bytesById.get(id) ?? 0;
    return total > MAX_PAGE_BYTES;
  });
  return end < 0 ? messages : messages.slice(0, Math.max(1, end));
}
