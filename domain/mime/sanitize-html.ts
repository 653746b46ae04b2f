import sanitize from 'sanitize-html';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { htmlToText, MAX_HTML_CHARACTERS } from './html-to-text.ts';
import { limitNesting, MAX_NESTING } from './limit-nesting.ts';
import { removeHidden } from './visible/separate-hidden.ts';

/** Marks the place where a text was truncated. */
export const TRUNCATION_MARK = '[…]';

/** Ordinary messages take a few milliseconds. */
const TIMEOUT_MS = 500;
const MAX_STYLE_CHARACTERS = 2_000;
const MAX_ATTRIBUTE_CHARACTERS = 4_096;

export const ALLOWED_TAGS: ReadonlySet<string> = new Set(
  (
    'a abbr address article b bdi bdo big blockquote br caption center cite code col colgroup dd del dfn div dl dt em ' +
    'figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark ol p pre q s samp section ' +
    'small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'
  ).split(' '),
);
const VOID_TAGS = ['br', 'col', 'hr', 'img', 'wbr'];
/** Removed with their content: scripts, foreign content and raw text. */
const REMOVED_TAGS =
  'script style title textarea template iframe object embed applet svg math xmp plaintext noembed noframes audio video canvas'.split(
    ' ',
  );
const ALLOWED_ATTRIBUTES = (
  'align alt bgcolor border cellpadding cellspacing color colspan dir face height lang rowspan size span start title ' +
  'type valign width'
).split(' ');
const LINK = /^(?:https?:|mailto:|tel:)/i;
const REMOTE_IMAGE = /^https?:/i;
const INLINE_IMAGE = /^cid:/i;

const ALLOWED_PROPERTY =
  /^(?:color|background-color|font(?:-(?:family|size|style|weight|variant))?|text-(?:align|decoration|indent|transform)|line-height|letter-spacing|white-space|vertical-align|(?:margin|padding|border)(?:-(?:top|right|bottom|left))?(?:-(?:color|style|width))?|border-(?:collapse|spacing|radius)|(?:max-|min-)?(?:width|height)|list-style(?:-type)?|direction|display)$/;
/**
 * Rejects values that load resources, run scripts or use escapes, and negative lengths, which could cover the reply
 * above.
 */
const UNSAFE_VALUE = /url|expression|script|[\\@<>{}]|\/\*|-\s*\.?\d/i;

export interface SanitizeOptions {
  /** Closing tags after the truncation may exceed it slightly. */
  maxBytes: number;
  /** Keeps images that the message contains (`cid:`). If false, they are replaced with their `alt` text. */
  keepInlineImages: boolean;
}

/**
 * Sanitizes received HTML for use inside another message: allow-listed elements, attributes and styles, every element
 * closed, no style sheets, scripts, forms or comments, and no text that people cannot see in the original. `sanitize-html` limits neither time nor output, so this function
 * does. HTML that takes too long is reduced to its text.
 *
 * @param timeoutMs limits the time for the HTML, and for its text if that is used instead.
 */
export function sanitizeHtml(
  html: string,
  { maxBytes, keepInlineImages }: SanitizeOptions,
  timeoutMs: number = TIMEOUT_MS,
): string {
  const source = removeHidden(html, timeoutMs);
  const options = keepInlineImages ? WITH_INLINE_IMAGES : WITHOUT_INLINE_IMAGES;
  const fragment = runWithTimeout(timeoutMs, () => {
    const clean =
      runSanitizer(limitNesting(source), options) +
      (html.length > MAX_HTML_CHARACTERS ? TRUNCATION_MARK : '');
    // The second pass closes elements that truncation left open. It also closes elements that a browser would close:
    // after the first pass has removed tags, elements may be nested that HTML does not nest (`<td><x><td>`).
    return runSanitizer(truncateMarkup(clean, maxBytes), options);
  });
  return fragment ?? textToHtml(htmlToText(source, timeoutMs), { maxBytes });
}

const WITH_INLINE_IMAGES = createSanitizerOptions(true);
const WITHOUT_INLINE_IMAGES = createSanitizerOptions(false);

function createSanitizerOptions(keepInlineImages: boolean): sanitize.IOptions {
  return {
    allowedTags: [...ALLOWED_TAGS],
    nonTextTags: REMOVED_TAGS,
    selfClosing: VOID_TAGS,
    nestingLimit: MAX_NESTING,
    allowedAttributes: { '*': [...ALLOWED_ATTRIBUTES, 'style'], a: ['href'], img: ['src'] },
    // Keeps empty attributes.
    nonBooleanAttributes: [],
    allowedSchemes: ['http', 'https', 'mailto', 'tel', 'cid'],
    // The library parses each style attribute as a style sheet, which doubles its time, and recognizes only lower case.
    parseStyleAttributes: false,
    transformTags: {
      '*': (tagName, attributes) => ({
        tagName,
        attribs: filterAttributes(tagName, attributes, keepInlineImages),
      }),
    },
  };
}

/** Sanitizes, and replaces each image that must not be displayed with its `alt` text, its only remaining attribute. */
function runSanitizer(html: string, options: sanitize.IOptions): string {
  return sanitize(html, options)
    .replace(/<img(?: alt="([^"]*)")? \/>/g, '$1')
    .replaceAll(' />', '>');
}

/**
 * Truncates sanitized HTML, never within a tag or a character reference. Text and attribute values contain no `<` or
 * `>`.
 */
function truncateMarkup(html: string, maxBytes: number): string {
  if (Buffer.byteLength(html) <= maxBytes) return html;
  const truncated = takeFirstBytes(html, maxBytes);
  const isWithinTag = truncated.lastIndexOf('<') > truncated.lastIndexOf('>');
  const whole = isWithinTag ? truncated.slice(0, truncated.lastIndexOf('<')) : truncated;
  return whole.replace(/&[a-z]{0,4}$/, '') + TRUNCATION_MARK;
}

function filterAttributes(
  tag: string,
  attributes: Record<string, string>,
  keepInlineImages: boolean,
): Record<string, string> {
  if (tag === 'img' && !isAllowedImage(attributes.src?.trim() ?? '', keepInlineImages))
    return { alt: attributes.alt ?? '' };
  const safe = Object.entries(attributes).map(
    ([name, value]) => [name, filterAttributeValue(tag, name, value)] as const,
  );
  return Object.fromEntries(safe.filter((entry): entry is [string, string] => entry[1] !== null));
}

function filterAttributeValue(tag: string, attribute: string, value: string): string | null {
  if (value.length > MAX_ATTRIBUTE_CHARACTERS) return null;
  if (attribute === 'style') return filterStyle(value) || null;
  if (tag === 'a' && attribute === 'href') return LINK.test(value.trim()) ? value.trim() : null;
  if (tag === 'img' && attribute === 'src') return value.trim();
  return value;
}

function isAllowedImage(source: string, keepInlineImages: boolean): boolean {
  return REMOTE_IMAGE.test(source) || (keepInlineImages && INLINE_IMAGE.test(source));
}

function filterStyle(style: string): string {
  return style
    .slice(0, MAX_STYLE_CHARACTERS)
    .split(';')
    .map((declaration) => declaration.trim())
    .filter((declaration) => {
      const colon = declaration.indexOf(':');
      const property = declaration.slice(0, Math.max(0, colon)).trim().toLowerCase();
      return ALLOWED_PROPERTY.test(property) && !UNSAFE_VALUE.test(declaration.slice(colon + 1));
    })
    .join(';');
}

/** Converts text to HTML and preserves its line breaks. */
export function textToHtml(text: string, { maxBytes }: Pick<SanitizeOptions, 'maxBytes'>): string {
  // Escaping expands one byte to at most six, and leaves most bytes unchanged.
  const truncated = truncateToBytes(text, maxBytes);
  const escaped = escapeHtml(truncated);
  const fitting =
    Buffer.byteLength(escaped) <= maxBytes ? escaped : escapeHtml(truncateToBytes(truncated, maxBytes / 6));
  return `<div style="white-space:pre-wrap">${fitting}</div>`;
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Truncates text to a number of UTF-8 bytes and appends {@link TRUNCATION_MARK}; returns shorter text unchanged. */
export function truncateToBytes(text: string, maxBytes: number): string {
  return Buffer.byteLength(text) <= maxBytes ? text : takeFirstBytes(text, maxBytes) + TRUNCATION_MARK;
}

function takeFirstBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text).subarray(0, Math.max(0, Math.floor(maxBytes)));
  // With `stream`, the decoder withholds an incomplete character at the end.
  return new TextDecoder().decode(bytes, { stream: true });
}
