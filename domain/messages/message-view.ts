import { type RawBuilder, sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Db } from '../../platform/database/tables.ts';
import { READ_CHARACTERS } from './agent-text.ts';
import { type ListedMessage, loadDetailsForAll, type MessageDetails } from './message-details.ts';

/** How much of each message a list shows: `summary` has the new text, `full` the bodies and headers too, `agent` the start of the text. */
export const MESSAGE_VIEWS = ['compact', 'summary', 'full', 'agent'] as const;
/** `conversation` is for people who read a thread: the new text and the text body; of a sent message without one, its HTML. */
export type MessageView = (typeof MESSAGE_VIEWS)[number] | 'conversation';

/** A page ends before the message that would exceed this size. This bounds the memory of the process and of the client. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

const SUMMARY_COLUMNS = ['m.extracted_text as extractedText'] as const;
const CONVERSATION_CHARACTERS = 50_000;
const COLUMNS = {
  conversation: [
    sql<string | null>`left(m.extracted_text, ${sql.lit(CONVERSATION_CHARACTERS)})`.as('extractedText'),
    sql<string | null>`left(m.text_body, ${sql.lit(CONVERSATION_CHARACTERS)})`.as('textBody'),
    sql<string | null>`case when m.direction = 'outbound' and m.text_body is null
      then left(m.html_body, ${sql.lit(CONVERSATION_CHARACTERS)}) end`.as('htmlBody'),
  ],
  compact: [],
  summary: SUMMARY_COLUMNS,
  full: [
    ...SUMMARY_COLUMNS,
    'm.text_body as textBody',
    'm.html_body as htmlBody',
    'm.hidden_text as hiddenText',
    'm.headers',
  ],
  agent: [
    sql<string | null>`left(m.extracted_text, ${sql.lit(READ_CHARACTERS)})`.as('extractedText'),
    sql<
      string | null
    >`case when m.direction = 'outbound' then left(m.text_body, ${sql.lit(READ_CHARACTERS)}) end`.as(
      'textBody',
    ),
    sql<Record<string, string>>`case when m.direction = 'inbound' then jsonb_strip_nulls(
      jsonb_build_object('date', m.headers->'date')) else '{}' end`.as('headers'),
  ],
} as const;

/** PostgreSQL knows the length of a text that is stored out of line without reading it. */
const SUBJECT_BYTES = sql<number>`coalesce(octet_length(subject), 0)`;
const FINDINGS_BYTES = sql<number>`octet_length(injection::text) + octet_length(codes::text) + octet_length(links::text) + octet_length(invites::text)`;
const SUMMARY_BYTES = sql<number>`${SUBJECT_BYTES} + ${FINDINGS_BYTES} + coalesce(octet_length(extracted_text), 0)
  + 2 * (octet_length("to"::text) + octet_length(cc::text) + octet_length(bcc::text))
  + octet_length(array_to_string(reference_ids, ' '))`;
const BYTES: Record<MessageView, RawBuilder<number>> = {
  compact: sql`${SUBJECT_BYTES} + ${FINDINGS_BYTES}`,
  agent: sql`${SUBJECT_BYTES} + ${FINDINGS_BYTES} + 4000
    + 2 * (octet_length("to"::text) + octet_length(cc::text) + octet_length(bcc::text))`,
  conversation: sql`${SUMMARY_BYTES} + least(coalesce(octet_length(text_body), octet_length(html_body), 0), ${sql.lit(CONVERSATION_CHARACTERS)})`,
  summary: SUMMARY_BYTES,
  full: sql`${SUMMARY_BYTES} + coalesce(octet_length(text_body), 0) + coalesce(octet_length(html_body), 0)
    + coalesce(octet_length(hidden_text), 0) + octet_length(headers::text)`,
};

/**
 * Loads what the view shows: the texts, and except for `compact` recipients and attachments. All other columns of the messages
 * have already been read.
 *
 * @returns the messages up to {@link MAX_PAGE_BYTES}, at least one. Messages that were deleted in the meantime are
 * omitted.
 */
export async function loadView(
  db: Db,
  messages: readonly ListedMessage[],
  view: MessageView,
): Promise<MessageDetails[]> {
  if (messages.length === 0) return [];
  const [texts, all] = await Promise.all([
    selectTexts(db, { ids: messages.map(({ id }) => id), view }),
    view === 'compact'
      ? messages.map((message) => ({ message, recipients: [], attachments: [] }))
      : loadDetailsForAll(db, messages),
  ]);
  const textsById = new Map<string, Partial<ListedMessage>>(texts.map((row) => [row.id, row]));
  return all.flatMap((details) => {
    const found = textsById.get(details.message.id);
    return found ? [{ ...details, message: { ...details.message, ...found } }] : [];
  });
}

/** Of the messages that the page has room for. */
const selectTexts = compileOnce(
  (db, { ids, view }: { ids: readonly string[]; view: MessageView }) =>
    db
      .with('listed', (cte) =>
        cte
          .selectFrom(
            sql<Listed>`unnest(${ids}::text[]) with ordinality`.as<'l'>(sql`l(listed_id, position)`),
          )
          .innerJoin('messages as m', 'm.id', 'l.listed_id')
          .select([
            'm.id',
            'l.position',
            sql<number>`sum(${BYTES[view]}) over (order by l.position)`.as('bytes'),
          ]),
      )
      .selectFrom('listed')
      .innerJoin('messages as m', 'm.id', 'listed.id')
      .select(['m.id', ...COLUMNS[view]])
      .where((eb) =>
        eb.or([
          eb('listed.bytes', '<=', MAX_PAGE_BYTES),
          eb(
            'listed.position',
            '=',
            eb.selectFrom('listed as first').select(({ fn }) => fn.min('first.position').as('position')),
          ),
        ]),
      ),
  ['view'],
);

interface Listed {
  listed_id: string;
  position: number;
}
