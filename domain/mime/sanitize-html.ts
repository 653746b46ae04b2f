import { Parser } from 'htmlparser2';
import { withinTime } from '../../platform/time-limit.ts';
import { MAX_HTML_CHARACTERS, textFromHtml } from './html-to-text.ts';

/** What is written where the rest did not fit. */
export const CUT_MARK = '[…]';

/** Ordinary mail takes a few milliseconds. */
const TIMEOUT_MS = 500;
/** Elements deeper than this lose their tags and keep their text. */
const MAX_DEPTH = 100;
const MAX_STYLE_CHARACTERS = 2_000;
const MAX_ATTRIBUTE_CHARACTERS = 4_096;

export const FRAGMENT_TAGS: ReadonlySet<string> = new Set(
  (
    'a abbr address article b bdi bdo big blockquote br caption center cite code col colgroup dd del dfn div dl dt em ' +
    'figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark ol p pre q s samp section ' +
    'small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'
  ).split(' '),
);
const VOID_TAGS = new Set(['br', 'col', 'hr', 'img', 'wbr']);
/** Go with all they hold: programs, what is shown by other rules than HTML's, and what is no text. */
const DROPPED = new Set(
  'script style title textarea template iframe object embed applet svg math xmp plaintext noembed noframes audio video canvas'.split(
    ' ',
  ),
);
const ATTRIBUTES = new Set(
  (
    'align alt bgcolor border cellpadding cellspacing color colspan dir face height lang rowspan size span start title ' +
    'type valign width'
  ).split(' '),
);
const LINK = /^(?:https?:|mailto:|tel:)/i;
const REMOTE_IMAGE = /^https?:/i;
const INLINE_IMAGE = /^cid:/i;

const PROPERTY =
  /^(?:color|background-color|font(?:-(?:family|size|style|weight|variant))?|text-(?:align|decoration|indent|transform)|line-height|letter-spacing|white-space|vertical-align|(?:margin|padding|border)(?:-(?:top|right|bottom|left))?(?:-(?:color|style|width))?|border-(?:collapse|spacing|radius)|(?:max-|min-)?(?:width|height)|list-style(?:-type)?|direction|display)$/;
/** Nothing that loads, runs or hides in escapes, and no negative length: it could cover what the replier wrote. */
const UNSAFE_VALUE = /url|expression|script|[\\@<>{}]|\/\*|-\s*\.?\d/i;

export interface FragmentOptions {
  /** The fragment is at most a little longer: open elements are closed. */
  maxBytes: number;
  /** Pictures of the mail's own parts stay; else their `alt` stands for them. */
  keepInlineImages: boolean;
}

/**
 * A stranger's HTML as a piece to put into another mail: elements and attributes that are known to be harmless, every
 * element closed, text escaped anew, no style sheet, script, form or comment. In bounded time whatever the input.
 */
export function safeFragment(html: string, options: FragmentOptions): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  const cut = source.length < html.length;
  const fragment = withinTime(TIMEOUT_MS, () => {
    const known = rewrite(source, options, cut);
    // Without the elements that went, others may stand within one another that HTML closes by each other's start
    // (`<td><x><td>`): read once more, each is closed where a reader of the fragment closes it.
    return rewrite(known, { ...options, maxBytes: Number.POSITIVE_INFINITY }, false);
  });
  return fragment ?? fragmentOfText(textFromHtml(source), options);
}

/** Text as HTML that keeps its lines. */
export function fragmentOfText(text: string, { maxBytes }: Pick<FragmentOptions, 'maxBytes'>): string {
  // An escaped character has at most six bytes, most have one.
  const kept = cutToBytes(text, maxBytes);
  const escaped = escapeHtml(kept);
  const fitting =
    Buffer.byteLength(escaped) <= maxBytes ? escaped : escapeHtml(cutToBytes(kept, maxBytes / 6));
  return `<div style="white-space:pre-wrap">${fitting}</div>`;
}

function rewrite(source: string, { maxBytes, keepInlineImages }: FragmentOptions, cut: boolean): string {
  const out: string[] = [];
  /** Of each open element the tag that was written for it, if any. */
  const open: (string | null)[] = [];
  let written = 0;
  let dropped = 0;
  let room = maxBytes;
  const write = (piece: string): boolean => {
    if (room < 0) return false;
    room -= Buffer.byteLength(piece);
    out.push(room < 0 ? CUT_MARK : piece);
    return room >= 0;
  };
  const reader = new Parser({
    onopentag(name, attributes) {
      const drops = DROPPED.has(name);
      if (drops || dropped > 0) dropped += 1;
      const tag =
        dropped === 0 && FRAGMENT_TAGS.has(name) && written < MAX_DEPTH
          ? openTag(name, attributes, keepInlineImages)
          : '';
      const kept = tag !== '' && write(tag) && !VOID_TAGS.has(name) && tag.startsWith('<');
      open.push(kept ? name : null);
      if (kept) written += 1;
    },
    ontext(text) {
      if (dropped === 0) write(escapeHtml(text));
    },
    onclosetag() {
      const tag = open.pop();
      if (dropped > 0) dropped -= 1;
      if (!tag) return;
      written -= 1;
      out.push(`</${tag}>`);
    },
  });
  reader.end(source);
  if (cut && room >= 0) out.push(CUT_MARK);
  return out.join('');
}

/** As it is written; text for a picture that does not stay. */
function openTag(name: string, attributes: Record<string, string>, keepInlineImages: boolean): string {
  if (name === 'img' && !isShown(attributes.src ?? '', keepInlineImages))
    return escapeHtml(attributes.alt ?? '');
  const kept = Object.entries(attributes).flatMap(([attribute, value]) => {
    const safe = safeAttribute(name, attribute, value);
    return safe === null ? [] : [` ${attribute}="${escapeHtml(safe)}"`];
  });
  return `<${name}${kept.join('')}>`;
}

function safeAttribute(tag: string, attribute: string, value: string): string | null {
  if (value.length > MAX_ATTRIBUTE_CHARACTERS) return null;
  if (attribute === 'style') return safeStyle(value);
  if (tag === 'a' && attribute === 'href') return LINK.test(value.trim()) ? value.trim() : null;
  // Looked at before: an image that is not shown has no tag.
  if (tag === 'img' && attribute === 'src') return value.trim();
  return ATTRIBUTES.has(attribute) ? value : null;
}

function isShown(source: string, keepInlineImages: boolean): boolean {
  return REMOTE_IMAGE.test(source.trim()) || (keepInlineImages && INLINE_IMAGE.test(source.trim()));
}

function safeStyle(style: string): string | null {
  const kept = style
    .slice(0, MAX_STYLE_CHARACTERS)
    .split(';')
    .map((declaration) => declaration.trim())
    .filter((declaration) => {
      const colon = declaration.indexOf(':');
      const property = declaration.slice(0, Math.max(0, colon)).trim().toLowerCase();
      return PROPERTY.test(property) && !UNSAFE_VALUE.test(declaration.slice(colon + 1));
    });
  return kept.length > 0 ? kept.join(';') : null;
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** The longest beginning of a text that has no more bytes in UTF-8, with {@link CUT_MARK} where something is missing. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const whole = new TextDecoder().decode(Buffer.from(text).subarray(0, Math.max(0, Math.floor(maxBytes))), {
    stream: true,
  });
  return `${whole}${CUT_MARK}`;
}
