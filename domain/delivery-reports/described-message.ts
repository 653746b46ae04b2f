import { HEADER_FIELDS } from '../mime/quotes/quote-headers.ts';
import { findEnhancedCode, findReplyCode } from './bounce-phrases.ts';

/** `  To:      anna@example.com`, `	* From: anna@example.com`, `> Subject: Offer`. */
const FIELD_LINE = /^([\s>*•·|-]{0,40})(\p{L}[\p{L} .'-]{0,24}?)[ \t]*[:：][ \t]*(.*)$/u;
const MAX_LINE_CHARACTERS = 400;
/** Meanings of the names that mail programs do not translate. */
const OTHER_FIELDS: Record<string, string> = {
  'message-id': 'id',
  'in-reply-to': 'id',
  'received on': 'date',
};
/** Fields that identify the message. A field that names a recipient may instead report a failure. */
const DESCRIBING = new Set(['subject', 'date', 'id', 'from']);

interface Field {
  indent: number;
  meanings: ReadonlySet<string>;
  value: string;
}

/**
 * Separates the fields with which a notice describes the returned message:
 * `Your message To: … Subject: … Sent: … did not reach …`. The fields name the recipients of the original message, and
 * a subject may contain anything, such as `Mailman 5.1.1`.
 *
 * @returns the lines with blank ones instead of those fields, and the fields, as in a header.
 */
export function separateDescription(lines: readonly string[]): { lines: string[]; description: string[] } {
  const kept: string[] = [];
  const description: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const { fields, end } = readFields(lines, at);
    if (isDescription(fields)) {
      for (const { meanings, value } of fields)
        if (meanings.has('to')) description.push(`${description.length === 0 ? 'To' : 'Cc'}: ${value}`);
      kept.push(...Array.from({ length: end - at }, () => ''));
    } else kept.push(...lines.slice(at, end));
    at = end;
  }
  return { lines: kept, description };
}

/** Reads the fields that start at a line, and returns the line below them; at least the next line. */
function readFields(lines: readonly string[], start: number): { fields: Field[]; end: number } {
  const fields: Field[] = [];
  let at = start;
  for (; at < lines.length; at += 1) {
    const field = parseField(lines[at]);
    const previous = fields.at(-1);
    if (field !== null) fields.push(field);
    else if (previous === undefined || !isContinuation(lines[at], previous)) break;
  }
  return { fields, end: Math.max(at, start + 1) };
}

function isDescription(fields: readonly Field[]): boolean {
  const meanings = new Set(fields.flatMap((field) => [...field.meanings]));
  if (fields.length === 1) return meanings.has('subject');
  return [...meanings].some((meaning) => DESCRIBING.has(meaning));
}

function parseField(line: string | undefined): Field | null {
  const [, before = '', name = '', value = ''] =
    FIELD_LINE.exec((line ?? '').slice(0, MAX_LINE_CHARACTERS)) ?? [];
  const known = OTHER_FIELDS[name.toLowerCase()];
  const meanings = known ? new Set([known]) : HEADER_FIELDS.get(name.toLowerCase());
  if (meanings === undefined) return null;
  // `To: anna@example.com: 550 5.1.1 user unknown` reports a failure.
  const reports = findReplyCode(value) !== null || findEnhancedCode(value) !== null;
  return reports && !meanings.has('subject') && !meanings.has('date')
    ? null
    : { indent: before.length, meanings, value };
}

/** The rest of a long field is indented deeper. */
function isContinuation(line: string | undefined, { indent }: Field): boolean {
  const spaces = /^[ \t]*/.exec(line ?? '')?.[0].length ?? 0;
  return spaces > indent && (line ?? '').trim() !== '';
}
