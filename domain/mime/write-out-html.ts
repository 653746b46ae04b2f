import { Parser } from 'htmlparser2';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { MAX_HTML_CHARACTERS } from './html-to-text.ts';
import { limitNesting } from './limit-nesting.ts';
import { escapeHtml } from './sanitize-html.ts';
import { UNDISPLAYED_ELEMENTS } from './undisplayed-elements.ts';

const MAX_WORDS = 300;
const MAX_HREF = 8_192;
/** Images of this size count opens. */
const MAX_PIXEL = 2;
/** The text of the head is not of the message. */
const SKIPPED = new Set([...UNDISPLAYED_ELEMENTS, 'head']);
const ATTRIBUTE_NAME = /^[a-z][a-z0-9:_-]{0,50}$/;

type Attributes = Record<string, string>;

/**
 * Writes as text and links what a mail program shows by other means, so that the conversion to text keeps it: relative
 * links become absolute (`base`), a link without words gets the `alt` of its image or its `title`, a button of a form
 * becomes a link to the target of the form. In a message without any words, the `alt` of each image counts.
 *
 * @param html visible content only.
 */
export function writeOutHtml(html: string): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  if (!/<(?:base|img|button|input|a)\b/i.test(source)) return source;
  const limited = limitNesting(source);
  const writer = new Writer(limited);
  writer.read();
  return writer.result();
}

/** Real messages take a few milliseconds. */
const TIMEOUT_MS = 2_000;

/** {@link writeOutHtml} with a time limit. After a timeout, the HTML stays as it is. */
export function writeOutHtmlWithTimeout(html: string, timeoutMs: number = TIMEOUT_MS): string {
  return runWithTimeout(timeoutMs, () => writeOutHtml(html)) ?? html.slice(0, MAX_HTML_CHARACTERS);
}

interface Change {
  at: number;
  /** End of the replaced source; equal to `at` if text is only inserted. */
  to: number;
  html: string;
}

interface Link {
  hasWords: boolean;
  words: string;
}

class Writer {
  readonly #source: string;
  readonly #changes: Change[] = [];
  /** The words of images outside links: they count if the message has no other words. */
  readonly #imageWords: Change[] = [];
  #base: URL | null = null;
  #link: Link | null = null;
  #button: { isLinked: boolean; hasWords: boolean; words: string } | null = null;
  #form: { action: string | null } | null = null;
  #rawDepth = 0;
  #hasWords = false;

  constructor(source: string) {
    this.#source = source;
  }

  read(): void {
    const parser = new Parser({
      onopentag: (name, attributes) => this.#open(name, attributes, parser),
      ontext: (text) => this.#readText(text),
      onclosetag: (name) => this.#close(name, parser.startIndex),
    });
    parser.end(this.#source);
  }

  result(): string {
    const changes = this.#hasWords ? this.#changes : [...this.#changes, ...this.#imageWords];
    if (changes.length === 0) return this.#source;
    const pieces: string[] = [];
    let copiedTo = 0;
    for (const { at, to, html } of changes.sort((a, b) => a.at - b.at)) {
      if (at < copiedTo) continue;
      pieces.push(this.#source.slice(copiedTo, at), html);
      copiedTo = to;
    }
    return pieces.join('') + this.#source.slice(copiedTo);
  }

  #open(name: string, attributes: Attributes, parser: Parser): void {
    const end = Math.min(parser.endIndex + 1, this.#source.length);
    if (SKIPPED.has(name)) this.#rawDepth += 1;
    if (name === 'base') this.#base ??= toUrl(attributes.href ?? '', null);
    else if (name === 'a') this.#openLink(attributes, parser.startIndex, end);
    else if (name === 'img') this.#readImage(attributes, end);
    else if (name === 'form') this.#form = { action: this.#toTarget(attributes.action) };
    else if (name === 'button' && this.#form) this.#openButton(attributes, end);
    else if (name === 'input' && this.#form) this.#readInput(attributes, end);
  }

  #openLink(attributes: Attributes, start: number, end: number): void {
    const { href = '' } = attributes;
    this.#link = { hasWords: false, words: clean(attributes.title) };
    const target = this.#base && isRelative(href) ? toUrl(href, this.#base)?.href : undefined;
    if (target !== undefined)
      this.#changes.push({ at: start, to: end, html: toTag('a', { ...attributes, href: target }) });
  }

  #readImage(attributes: Attributes, end: number): void {
    const words = isPixel(attributes) ? '' : clean(attributes.alt);
    if (words === '') return;
    if (this.#link) this.#link.words = words;
    else if (this.#button) this.#button.words = words;
    else this.#imageWords.push(insertion(end, ` ${escapeHtml(words)} `));
  }

  #openButton({ type, formaction, title }: Attributes, end: number): void {
    const target = this.#toTarget(formaction) ?? this.#form?.action ?? null;
    const isLinked = target !== null && type?.toLowerCase() !== 'reset' && !this.#link;
    this.#button = { isLinked, hasWords: false, words: clean(title) };
    if (isLinked) this.#changes.push(insertion(end, toTag('a', { href: target })));
  }

  #readInput({ type = '', value, alt, formaction }: Attributes, end: number): void {
    if (!['submit', 'button', 'image'].includes(type.toLowerCase())) return;
    const words = clean(value) || clean(alt);
    if (words === '') return;
    const target = this.#toTarget(formaction) ?? this.#form?.action ?? null;
    const text = escapeHtml(words);
    this.#hasWords = true;
    this.#changes.push(
      insertion(end, target === null ? ` ${text} ` : ` ${toTag('a', { href: target })}${text}</a> `),
    );
  }

  #readText(text: string): void {
    if (this.#rawDepth > 0 || !/[\p{L}\p{N}]/u.test(text)) return;
    this.#hasWords = true;
    if (this.#link) this.#link.hasWords = true;
    if (this.#button) this.#button.hasWords = true;
  }

  #close(name: string, start: number): void {
    if (SKIPPED.has(name)) this.#rawDepth = Math.max(0, this.#rawDepth - 1);
    const at = Math.min(start, this.#source.length);
    if (name === 'a' && this.#link) {
      if (!this.#link.hasWords && this.#link.words !== '')
        this.#changes.push(insertion(at, escapeHtml(this.#link.words)));
      this.#link = null;
    } else if (name === 'button' && this.#button) {
      const { isLinked, hasWords, words } = this.#button;
      this.#changes.push(insertion(at, `${hasWords ? '' : escapeHtml(words)}${isLinked ? '</a>' : ''}`));
      this.#button = null;
    } else if (name === 'form') this.#form = null;
  }

  #toTarget(action: string | undefined): string | null {
    const url = action ? toUrl(action, this.#base) : null;
    return url && /^https?:$/.test(url.protocol) ? url.href : null;
  }
}

const insertion = (at: number, html: string): Change => ({ at, to: at, html });

function toTag(name: string, attributes: Attributes): string {
  const written = Object.entries(attributes)
    .filter(([key]) => ATTRIBUTE_NAME.test(key))
    .map(([key, value]) => ` ${key}="${escapeHtml(value)}"`);
  return `<${name}${written.join('')}>`;
}

/** Words on one line; empty if there is no letter or digit. */
function clean(words: string | undefined): string {
  const line = (words ?? '').slice(0, MAX_WORDS).replace(/\s+/g, ' ').trim();
  return /[\p{L}\p{N}]/u.test(line) ? line : '';
}

function isRelative(href: string): boolean {
  return (
    href !== '' &&
    href.length <= MAX_HREF &&
    !href.startsWith('#') &&
    !/^\s*[a-z][a-z0-9+.-]{0,30}:/i.test(href)
  );
}

function toUrl(href: string, base: URL | null): URL | null {
  if (href.length > MAX_HREF) return null;
  return URL.parse(href.trim(), base?.href);
}

function isPixel({ width = '', height = '' }: Attributes): boolean {
  return [width, height].some((size) => /^\s*\d/.test(size) && Number.parseInt(size, 10) <= MAX_PIXEL);
}
