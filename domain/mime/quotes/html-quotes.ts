import { Parser } from 'htmlparser2';
import { MAX_HTML_CHARACTERS } from '../html-to-text.ts';
import { limitNesting } from '../limit-nesting.ts';
import { type Line, type LineKind, normalizeText, toLine } from './lines.ts';

/**
 * Marks that are inserted into the source, each on its own line after the conversion: the start and end of a region,
 * and the point after which everything is quoted. They are private-use characters, which are removed from the source
 * first.
 */
const MARKS = {
  quoted: '\ue001',
  attribution: '\ue002',
  signature: '\ue003',
  end: '\ue004',
  cut: '\ue005',
  answered: '\ue006',
};
const ANY_MARK = /[\ue001-\ue006]/g;

/** The mail program marks `answered` text as quoted; `quoted` text may also be a passage that the author quotes. */
type Region = 'quoted' | 'answered' | 'attribution' | 'signature';

/** Classes of elements that contain only quoted text. */
const QUOTED_CLASSES = new Set([
  'gmail_quote',
  'gmail_quote_container',
  'yahoo_quoted',
  'protonmail_quote',
  'tutanota_quote',
  'zmail_extra',
  'moz-forward-container',
  'ms-outlook-mobile-reference-message',
  'front-blockquote',
  'sh-quote',
  'qt__quote',
  'iosymail',
  'replyheader',
  'ntes-mailmaster-quote',
  'xm_mail_oringinal_describe',
]);
const ATTRIBUTION_CLASSES = new Set(['gmail_attr', 'moz-cite-prefix', 'moz-email-headers-table']);
const ATTRIBUTION_IDS = new Set(['reply-intro']);
const SIGNATURE_CLASSES = new Set([
  'gmail_signature',
  'gmail_signature_prefix',
  'moz-signature',
  'protonmail_signature_block',
  'ms-outlook-mobile-signature',
]);
const QUOTED_IDS = /^(?:qt|isreplycontent|includetail|replysplit)$/;
const SIGNATURE_IDS =
  /^(?:signature|ms-outlook-mobile-signature|applemailsignature|ymail_android_signature|ymail_ios_signature)$/;
const QUOTED_NAMES = new Set(['quote', 'isreplycontent', 'includetail']);
/** Outlook puts the quoted message next to these elements, not inside them: everything after them is history. */
const DIVIDER_IDS =
  /^(?:divrplyfwdmsg|appendonsend|stopspelling|mail-editor-reference-message-container|zwchr)$/;
/** The rule Outlook for Windows draws above `From: … Sent: …`, in both of its colors and all its units. */
const DIVIDER_STYLE =
  /border-top:\s*(?:solid\s+(?:#e1e1e1|#b5c4df|rgb\(181,\s*196,\s*223\)|rgb\(225,\s*225,\s*225\))\s+1(?:\.0)?p[tx]|1(?:\.0)?p[tx]\s+solid\s+(?:#e1e1e1|#b5c4df|rgb\(181,\s*196,\s*223\)|rgb\(225,\s*225,\s*225\)))/;

interface OpenElement {
  region: Region | null;
  /** A container around one `blockquote`. Anything after the `blockquote` is an answer below it. */
  endsWithBlockquote: boolean;
}

/**
 * Inserts marks at the quotes and signatures that the HTML of mail programs identifies. Works in one pass without a
 * tree, because the sender controls the depth and breadth of a tree. The source between the marks is unchanged.
 */
export function markHtmlQuotes(html: string): string {
  const source = limitNesting(html.slice(0, MAX_HTML_CHARACTERS).replace(ANY_MARK, ' '));
  const pieces: string[] = [];
  let copiedTo = 0;
  let isPastDivider = false;
  const open: OpenElement[] = [];
  const mark = (at: number, marks: string) => {
    pieces.push(source.slice(copiedTo, at), marks);
    copiedTo = at;
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      if (isPastDivider) return;
      if (isDivider(attributes)) {
        isPastDivider = true;
        mark(parser.startIndex, toMarkLine(MARKS.cut));
        return;
      }
      const region = classifyElement(name, attributes);
      open.push({ region, endsWithBlockquote: region === 'answered' && name !== 'blockquote' });
      if (region !== null) mark(parser.startIndex, toMarkLine(MARKS[region]));
    },
    onclosetag(name, implied) {
      if (isPastDivider) return;
      const closed = open.pop();
      const at = implied ? parser.startIndex : parser.endIndex + 1;
      if (closed === undefined || at < copiedTo) return;
      if (closed.region !== null) mark(Math.min(at, source.length), toMarkLine(MARKS.end));
      const parent = open.at(-1);
      if (name !== 'blockquote' || !parent?.endsWithBlockquote) return;
      mark(Math.min(at, source.length), toMarkLine(MARKS.end));
      parent.region = null;
      parent.endsWithBlockquote = false;
    },
  });
  parser.end(source);
  return pieces.join('') + source.slice(copiedTo);
}

const toMarkLine = (mark: string) => `<div>${mark}</div>`;

type Attributes = Record<string, string>;

function classifyElement(name: string, attributes: Attributes): Region | null {
  if (name === 'br' || name === 'img' || name === 'body' || name === 'html') return null;
  const classes = (attributes.class ?? '').slice(0, 500).split(/\s+/, 20).map(normalizeName);
  const id = normalizeName((attributes.id ?? '').slice(0, 100));
  if (classes.some((word) => ATTRIBUTION_CLASSES.has(word)) || ATTRIBUTION_IDS.has(id)) return 'attribution';
  if (classes.some((word) => SIGNATURE_CLASSES.has(word)) || SIGNATURE_IDS.test(id)) return 'signature';
  if (classes.some((word) => QUOTED_CLASSES.has(word)) || QUOTED_IDS.test(id)) return 'answered';
  if (name === 'includetail' || QUOTED_NAMES.has((attributes.name ?? '').toLowerCase())) return 'answered';
  if (name !== 'blockquote') return null;
  return attributes.type?.toLowerCase() === 'cite' ? 'answered' : 'quoted';
}

/** Outlook prefixes classes and ids of a displayed message with `x_`. */
function normalizeName(word: string): string {
  return word.toLowerCase().replace(/^(?:x_)+/, '');
}

function isDivider({ id = '', style = '' }: Attributes): boolean {
  return (
    DIVIDER_IDS.test(normalizeName(id.slice(0, 100))) || DIVIDER_STYLE.test(style.slice(0, 500).toLowerCase())
  );
}

/**
 * Reads a mark in the text of marked HTML ({@link markHtmlQuotes}): the start of a region, its end, or the point after
 * which everything is quoted. Null for text.
 */
export function readMark(text: string): 'quoted' | 'unquoted' | 'end' | 'cut' | null {
  if (text.length !== 1 || !/[\ue001-\ue006]/.test(text)) return null;
  if (text === MARKS.end) return 'end';
  if (text === MARKS.cut) return 'cut';
  return text === MARKS.quoted || text === MARKS.answered ? 'quoted' : 'unquoted';
}

/** Splits text that was converted from marked HTML ({@link markHtmlQuotes}) into lines. */
export function toMarkedLines(text: string): Line[] {
  const regions = createRegionStack();
  const lines: Line[] = [];
  for (const raw of text.split('\n')) {
    const mark = /^[> ]*([\ue001-\ue006])$/.exec(normalizeText(raw))?.[1];
    if (mark === undefined) lines.push(toLineInRegions(raw, regions));
    else if (mark === MARKS.end) regions.pop();
    else if (mark === MARKS.cut) lines.push(createEmptyLine('cut'));
    else {
      const region = markToRegion(mark);
      if (region === 'answered' && !regions.isQuoted()) lines.push(createEmptyLine('attribution'));
      regions.push(region);
    }
  }
  return removeMarkGaps(lines);
}

const createEmptyLine = (kind: LineKind): Line => ({ raw: '', text: '', kind });

interface RegionStack {
  push(region: Region): void;
  pop(): void;
  innermost(): Region | undefined;
  /** Whether any of the open regions is quoted. The regions are counted, because there may be many. */
  isQuoted(): boolean;
  /** Whether the mail program marks none of the quoted regions. */
  isPassage(): boolean;
}

function createRegionStack(): RegionStack {
  const open: Region[] = [];
  let quotes = 0;
  let answered = 0;
  const isQuote = (region: Region | undefined) => region === 'quoted' || region === 'answered';
  return {
    push(region) {
      open.push(region);
      if (isQuote(region)) quotes += 1;
      if (region === 'answered') answered += 1;
    },
    pop() {
      const region = open.pop();
      if (isQuote(region)) quotes -= 1;
      if (region === 'answered') answered -= 1;
    },
    innermost: () => open.at(-1),
    isQuoted: () => quotes > 0,
    isPassage: () => quotes > 0 && answered === 0,
  };
}

function markToRegion(mark: string): Region {
  if (mark === MARKS.attribution) return 'attribution';
  if (mark === MARKS.signature) return 'signature';
  return mark === MARKS.answered ? 'answered' : 'quoted';
}

/** The converter adds `>` to the content of `blockquote`; this function adds it for other quoting elements. */
function toLineInRegions(raw: string, regions: RegionStack): Line {
  const line = toLine(raw.replace(ANY_MARK, ''));
  const innermost = regions.innermost();
  if (line.kind === 'quoted' && regions.isPassage()) return { ...line, isPassage: true };
  if (line.kind === 'quoted' || innermost === undefined) return line;
  if (innermost === 'attribution' || !regions.isQuoted()) {
    return line.kind === 'blank' ? line : { ...line, kind: innermost as LineKind };
  }
  return { ...line, raw: line.kind === 'blank' ? '>' : `> ${line.raw}`, kind: 'quoted' };
}

/** Removes blank lines that the marks leave behind. */
function removeMarkGaps(lines: Line[]): Line[] {
  const isGap = (line: Line | undefined) =>
    line !== undefined && line.kind !== 'cut' && line.raw.trim() === '';
  return lines.filter((line, at) => line.kind === 'attribution' || !isGap(line) || !isGap(lines[at - 1]));
}
