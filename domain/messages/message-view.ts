import { type EntityMetadata, raw, sql } from '@mikro-orm/core';
import type { Row, RowReader } from '../../platform/database/find-rows.ts';
import { columnOf } from '../../platform/database/row-filter.ts';
import type { Sql } from '../../platform/database/sql.ts';
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
const SUBJECT_BYTES = 'coalesce(octet_length(subject), 0)';
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
 * Loads the texts that the view shows, and no other column: the messages are read already.
 *
 * @returns the messages up to {@link MAX_PAGE_BYTES}, at least one. A message that was deleted since is left out.
 */
export async function loadView(
  reader: RowReader,
  messages: Row<Message>[],
  view: MessageView,
): Promise<Row<Message>[]> {
  if (messages.length === 0) return [];
  const ids = messages.map(({ id }) => id);
  const texts = await reader.execute<{ id: string }[]>(sql`
    with listed as (
      select m.id, l.position, sum(${raw(BYTES[view])}) over (order by l.position) as bytes
      from unnest(array[${ids}]::text[]) with ordinality l(listed_id, position) join messages m on m.id = l.listed_id
    )
    select m.id ${selectTexts(reader, view)} from listed join messages m on m.id = listed.id
    where listed.bytes <= ${MAX_PAGE_BYTES} or listed.position = (select min(position) from listed)`);
  const textsById = new Map(texts.map((row) => [row.id, row]));
  return messages.flatMap((message) => {
    const found = textsById.get(message.id);
    return found ? [{ ...message, ...found }] : [];
  });
}

function selectTexts(reader: RowReader, view: MessageView): Sql {
  const meta = reader.getMetadata().get(MessageEntity) as unknown as EntityMetadata;
  return raw(TEXTS[view].map((name) => `, m."${columnOf(meta, name)}" as "${name}"`).join(''));
}
