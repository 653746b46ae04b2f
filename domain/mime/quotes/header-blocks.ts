import type { Line } from './lines.ts';
import { HEADER_FIELDS, type HeaderField, isForwardedMarker, isOriginalMarker } from './quote-headers.ts';

const MAX_BLOCK_LINES = 30;
/** `*From:* Bob`, `**Von:** Bob`, `| From | Bob |`, `差出人: Bob`, `De : Bob`. */
const FIELD = /^[|*_ ]*([\p{L}\p{M}][\p{L}\p{M}'’./ -]{0,29}?)[*_ ]*(?:[:\uff1a]|\|)[*_ ]*(.*)$/u;
/** eM Client writes fields without a colon, below a divider. */
const FIELD_WITHOUT_COLON = /^(from|to|cc|sent|date|subject|von|an|datum|betreff|de|à|objet) +(\S.*)$/iu;
/** French webmail: `Message du 04/03/2026 10:11`, also with a colon. */
const MESSAGE_DU = /^(message du) (\d.*)$/i;
/** All fields on one line, as HTML converters leave them. */
const FIELDS_ON_ONE_LINE = /(?<![\p{L}])([\p{L}][\p{L} ]{0,19}?) ?[:\uff1a]/gu;
const ADDRESS = /[^\s<>@]{1,64}@[^\s<>@]{1,255}/;
const TIME = /(?<!\d)\d{1,2}[:.h時时]\d{2}(?!\d)/;
const DATE = /(?<!\d)(?:19|20)\d\d(?!\d)|\d[./-]\d{1,2}[./-]\d/;
/** A line of dashes, underscores or similar characters. */
const RULE = /^[-_=*─—–\u2010\u2011]{3,}$/;

export function isRule(line: Line | undefined): boolean {
  return line !== undefined && line.kind === 'text' && RULE.test(line.text);
}

/**
 * Recognizes the block of fields that Outlook and others put above a quoted message: `From:`, `Sent:`, `To:` and
 * `Subject:` in any language and order. Single fields are ignored, because people write `From: London` and `To: Paris`.
 * A block must contain a sender and either a subject or an address and a date.
 *
 * @returns its number of lines, or null.
 */
export function countHeaderBlockLines(lines: Line[], at: number, belowDivider = false): number | null {
  const first = parseField(lines[at], belowDivider);
  if (first === null) return null;
  if (isBlockInOneLine(lines[at])) return 1;
  const seen = new Set<HeaderField>();
  let senderHasAddress = false;
  let recipientHasAddress = false;
  let hasTime = false;
  let hasDate = false;
  let end = at;
  for (let next = at; next < lines.length && next < at + MAX_BLOCK_LINES; next += 1) {
    const line = lines[next];
    const field = parseField(line, belowDivider);
    if (field === null) {
      if (!continuesBlock(lines, next, belowDivider)) break;
      continue;
    }
    for (const meaning of field.meanings) seen.add(meaning);
    if (field.meanings.has('from') && ADDRESS.test(field.value || (lines[next + 1]?.text ?? '')))
      senderHasAddress = true;
    recipientHasAddress ||= field.meanings.has('to') && ADDRESS.test(field.value);
    if (field.meanings.has('date')) {
      hasTime ||= TIME.test(field.value);
      hasDate ||= DATE.test(field.value);
    }
    end = next + 1;
  }
  const traits = { senderHasAddress, recipientHasAddress, hasTime, hasDate, belowDivider };
  if (isHeaderBlock(seen, traits)) return end - at;
  return isBlockWithoutSender(seen, traits) && isBelowText(lines, at) ? end - at : null;
}

interface BlockTraits {
  senderHasAddress: boolean;
  recipientHasAddress: boolean;
  hasTime: boolean;
  hasDate: boolean;
  belowDivider: boolean;
}

function isHeaderBlock(
  seen: Set<HeaderField>,
  { senderHasAddress, hasTime, hasDate, belowDivider }: BlockTraits,
): boolean {
  if (!seen.has('from')) return false;
  if (belowDivider) return seen.size >= 2 || senderHasAddress;
  if (seen.has('subject')) return senderHasAddress || (seen.size >= 3 && (hasTime || hasDate));
  return seen.has('date') && (senderHasAddress || (hasTime && seen.has('to')));
}

/** `Date: Wed, 4 Mar 2026 10:11:00 +0000` and `To: alice@example.com`, which people do not write below their text. */
function isBlockWithoutSender(
  seen: Set<HeaderField>,
  { recipientHasAddress, hasTime, hasDate }: BlockTraits,
): boolean {
  if (seen.has('from') || !seen.has('date') || !seen.has('to')) return false;
  return hasDate && hasTime && (recipientHasAddress || seen.has('subject'));
}

function isBelowText(lines: Line[], at: number): boolean {
  const isApart = lines[at - 1]?.kind !== 'text' || isRule(lines[at - 1]);
  return isApart && lines.slice(0, at).some(({ kind }) => kind === 'text');
}

function parseField(
  line: Line | undefined,
  colonless: boolean,
): { meanings: ReadonlySet<HeaderField>; value: string } | null {
  if (line === undefined || line.kind !== 'text') return null;
  const match =
    FIELD.exec(line.text) ??
    MESSAGE_DU.exec(line.text) ??
    (colonless ? FIELD_WITHOUT_COLON.exec(line.text) : null);
  const meanings = HEADER_FIELDS.get(match?.[1]?.trim().toLowerCase() ?? '');
  return meanings === undefined ? null : { meanings, value: match?.[2] ?? '' };
}

/** Accepts blank lines between fields, wrapped values, and unknown fields (`Importance:`). */
function continuesBlock(lines: Line[], at: number, belowDivider: boolean): boolean {
  const line = lines[at];
  if (line?.kind === 'blank') {
    // A block has blank lines between all of its fields or between none of them.
    return parseField(lines[at + 1], belowDivider) !== null;
  }
  if (line?.kind !== 'text') return false;
  const next = lines[at + 1];
  const wrapped = /^\s/.test(line.raw) || /[;@]/.test(line.text) || /^[^:]{1,30}: /.test(line.text);
  return wrapped || parseField(next, belowDivider) !== null;
}

function isBlockInOneLine(line: Line | undefined): boolean {
  if (line === undefined) return false;
  const seen = new Set<HeaderField>();
  for (const [, name] of line.text.matchAll(FIELDS_ON_ONE_LINE)) {
    const last = name?.toLowerCase().split(' ').at(-1) ?? '';
    for (const meaning of HEADER_FIELDS.get(last) ?? []) seen.add(meaning);
  }
  return seen.has('from') && seen.has('subject') && seen.has('date') && ADDRESS.test(line.text);
}

/** Recognizes `-----Original Message-----` and similar lines; `forward` if the line announces a forwarded message. */
export function classifyDivider(lines: Line[], at: number): 'original' | 'forward' | null {
  const line = lines[at];
  if (line?.kind !== 'text') return null;
  if (isDividerWithFields(line)) return 'original';
  if (line.text.length > 120) return null;
  const framed = /^[-_=*#~─—–\u2010\u2011 ]{2,}/.test(line.text);
  const words = line.text
    .replace(/^[-_=*#~─—–\u2010\u2011<[( ]+|[-_=*#~─—–\u2010\u2011>\]) ]+$/gu, '')
    .toLowerCase();
  const bare = words.replace(/[:\uff1a]$/u, '').trim();
  if (isForwardedMarker(bare) && (framed || words !== bare)) return 'forward';
  // "Original Message" without dashes is a divider only if fields follow.
  if (isOriginalMarker(bare) && (framed || countHeaderBlockLines(lines, at + 1, true) !== null))
    return 'original';
  // `-----Bob/ACME wrote: -----` (Lotus Notes) is an attribution.
  return null;
}

/** `-----Original Message----- From: Bob Sent: …`, as HTML converters leave it. */
function isDividerWithFields({ text }: Line): boolean {
  const [, announced = '', name = ''] =
    /^-{2,} ?([^-:]{4,40}?) ?-{2,} ?([^:]{1,20}?) ?[:\uff1a]/u.exec(text) ?? [];
  return isOriginalMarker(announced.toLowerCase()) && HEADER_FIELDS.has(name.toLowerCase());
}

const REPLY_ABOVE = [
  /(?:reply|respond|answer|type your (?:reply|response)|write your (?:reply|response)|your reply|response) (?:only )?(?:just )?(?:above|over) (?:this|the|dotted|here)/i,
  /(?:antwort\w*|schreiben).{0,40}(?:über|oberhalb) (?:dieser|diese|der) (?:linie|zeile)/i,
  /(?:répond\w*|réponse|écri\w+).{0,40}au[- ]dessus de (?:cette|la) ligne/i,
  /(?:respond\w*|respuesta|escrib\w+|conteste).{0,40}(?:encima|arriba|por encima) de (?:esta|la) línea/i,
  /(?:respond\w*|resposta|escrev\w+|digite).{0,40}acima (?:desta|da) linha/i,
  /(?:antwoord\w*|reageer|typ\w*|reactie).{0,40}boven deze (?:regel|lijn)/i,
  /(?:rispond\w+|risposta|scriv\w+).{0,40}(?:sopra|al di sopra di|sopra a) (?:questa|la) (?:riga|linea)/i,
  /この(?:行|線|ライン)(?:より|の)上(?:に|で).{0,12}(?:返信|入力|記入)/,
  /(?:请|請)?在(?:此|本|这|這)(?:行|线|線)(?:以上|之上|上方|上面).{0,12}(?:回复|回覆|输入|輸入)/,
  /(?:odpowied\w+|odpisz|wpisz).{0,40}(?:powyżej|nad) (?:tej|tą) lini/i,
  /(?:svara?|svar).{0,40}(?:ovanför|ovenfor|over) (?:denna|denne|den här) (?:rad|raden|linje|linjen|linien)/i,
];

/** `##- Please type your reply above this line -##`: ticket systems put this above their message. */
export function isReplyAboveMarker(line: Line | undefined): boolean {
  if (line?.kind !== 'text' || line.text.length > 160) return false;
  const framed = /^[^\p{L}\p{N}]{2,}|[^\p{L}\p{N}.!]{2,}$/u.test(line.text);
  return (framed || line.text.length <= 60) && REPLY_ABOVE.some((marker) => marker.test(line.text));
}
