import { randomBytes } from 'node:crypto';

/** Fields whose text strangers may have written. */
export const FENCED_FIELDS: ReadonlySet<string> = new Set([
  'attendees',
  'context',
  'diagnostic_code',
  'excerpt',
  'filename',
  'left_out',
  'location',
  'name',
  'organizer',
  'parse_error',
  'preview',
  'reason',
  'subject',
  'summary',
  'text',
  'text_body',
  'uid',
]);
const WORD = /^[\w.+-]{1,128}$/;
/** Fields that a stranger fills and that need no fence in their usual form, in which they are used. */
export const SHAPED_FIELDS: Readonly<Record<string, RegExp>> = {
  code: WORD,
  content_id: /^[!-~]{1,255}$/,
  content_type: /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/,
  email: /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255}$/,
  end: /^[\dTZ:.+-]{1,40}$/,
  host: /^[\w.:[\]-]{1,255}$/,
  method: /^[A-Z-]{1,32}$/,
  origin_domain: /^[\w.-]{1,255}$/,
  participants: /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255}$/,
  start: /^[\dTZ:.+-]{1,40}$/,
  status_code: WORD,
  url: /^[^\s<>"]+$/,
};

/** Characters that people do not see, which carry hidden text. U+FE0F alone, in emoji, carries none. */
const INVISIBLE = /(?!\n|\t|\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** What looks like a mark, whichever nonce it names. Spaces are read in one way only, so that the time is linear. */
const MARK = /<(?=\s*(?:\/\s*)?untrusted)/gi;

/**
 * Makes an answer safe to read for a language model: text of strangers stands between marks with a nonce, which the sender
 * of a message cannot know, and invisible characters and Markdown images are escaped.
 */
export function fenceAnswer(answer: Record<string, unknown>): Record<string, unknown> {
  const nonce = randomBytes(4).toString('hex');
  return fenceValue(answer, undefined, nonce) as Record<string, unknown>;
}

function fenceValue(value: unknown, field: string | undefined, nonce: string): unknown {
  if (typeof value === 'string') return fenceText(value, field, nonce);
  if (Array.isArray(value)) return value.map((member) => fenceValue(member, field, nonce));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, fenceValue(member, name, nonce)]),
  );
}

function fenceText(text: string, field: string | undefined, nonce: string): string {
  // Also outside of fences: an error may quote what a stranger wrote.
  const inert = escapeInvisible(text)
    .replace(/!(?=\[)/g, '!\\')
    .replace(MARK, '\\u003c');
  if (field === undefined || text === '') return inert;
  const isOddlyShaped = SHAPED_FIELDS[field]?.test(text) === false;
  if (!FENCED_FIELDS.has(field) && !isOddlyShaped) return inert;
  return `<untrusted ${nonce}>${inert}</untrusted ${nonce}>`;
}

function escapeInvisible(text: string): string {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
