import { Parser } from 'htmlparser2';
import { runWithTimeout } from '../../../platform/run-with-timeout.ts';
import { MAX_HTML_CHARACTERS } from '../html-to-text.ts';
import { limitNesting } from '../limit-nesting.ts';
import { UNDISPLAYED_ELEMENTS } from '../undisplayed-elements.ts';
import { type Appearance, deriveAppearance, isConcealed, ROOT } from './appearance.ts';
import { stripInvisible } from './invisible-characters.ts';
import { hasMismatchedHost } from './link-hosts.ts';
import { parseStyleSheet, type StyleSheet } from './style-sheet.ts';

/** Longer hidden text is truncated, because it only serves as a warning. The HTML body contains all of it. */
export const MAX_HIDDEN_CHARACTERS = 10_000;
const MAX_COLLECTED_CHARACTERS = 4 * MAX_HIDDEN_CHARACTERS;
const MAX_SHEET_CHARACTERS = 200_000;
const MAX_LINK_TEXT = 300;
/** Comments by programs have a few words. A longer comment is text for programs to read. */
const MIN_COMMENT_WORDS = 8;
const INLINE = new Set(
  'a abbr b bdi bdo cite code em font i img ins kbd mark s small span strong sub sup u var wbr'.split(' '),
);

export interface SeparatedHtml {
  /** The HTML without the text and links that people cannot see. */
  html: string;
  /** The removed text, a line per block. Empty if it is only filler. */
  hidden: string;
  /** See {@link hasMismatchedHost}. */
  hasMismatchedLink: boolean;
}

/**
 * Separates the visible content of an HTML body from hidden content: elements that are not displayed, transparent, too
 * small, off the screen or clipped, and text in the color of its background. One pass, without a tree, because the
 * sender controls the depth and breadth of a tree.
 */
export function separateHidden(html: string): SeparatedHtml {
  const source = limitNesting(html.slice(0, MAX_HTML_CHARACTERS));
  const reader = new VisibilityReader(source, readStyleSheets(source));
  reader.read();
  return reader.result();
}

/** Real messages take a few milliseconds. */
const TIMEOUT_MS = 2_000;

/** {@link separateHidden} with a time limit. After a timeout, everything counts as visible. */
export function separateHiddenWithTimeout(html: string, timeoutMs: number = TIMEOUT_MS): SeparatedHtml {
  const separated = runWithTimeout(timeoutMs, () => separateHidden(html));
  return separated ?? { html: html.slice(0, MAX_HTML_CHARACTERS), hidden: '', hasMismatchedLink: false };
}

/** The HTML without text that people cannot see, for quotes. */
export function removeHidden(html: string, timeoutMs?: number): string {
  return stripInvisible(separateHiddenWithTimeout(html, timeoutMs).html).text;
}

function readStyleSheets(source: string): StyleSheet {
  const sheets: string[] = [];
  let length = 0;
  let isInside = false;
  if (/<style/i.test(source)) {
    const parser = new Parser({
      onopentagname(name) {
        isInside = name === 'style';
      },
      onclosetag() {
        isInside = false;
      },
      ontext(text) {
        if (!isInside || length > MAX_SHEET_CHARACTERS) return;
        sheets.push(text);
        length += text.length;
      },
    });
    parser.end(source);
  }
  return parseStyleSheet(sheets.join(''));
}

interface OpenElement {
  appearance: Appearance;
  isRaw: boolean;
  /** Where the removed element starts; null if it is displayed. */
  removedFrom: number | null;
  /** The tags of a link without visible text are removed, because the conversion shows its target. */
  isConcealedLink: boolean;
}

class VisibilityReader {
  readonly #source: string;
  readonly #sheet: StyleSheet;
  readonly #open: OpenElement[] = [];
  readonly #kept: string[] = [];
  #keptTo = 0;
  readonly #hidden: string[] = [];
  #hiddenLength = 0;
  #link: { href: string; text: string } | null = null;
  #hasMismatchedLink = false;

  constructor(source: string, sheet: StyleSheet) {
    this.#source = source;
    this.#sheet = sheet;
  }

  read(): void {
    const parser = new Parser({
      onopentag: (name, attributes) => this.#openElement(name, attributes, parser),
      ontext: (text) => this.#readText(text, parser),
      oncomment: (text) => this.#readComment(text),
      onclosetag: (name, implied) => this.#closeElement(name, implied, parser),
    });
    parser.end(this.#source);
  }

  result(): SeparatedHtml {
    const { text, hidden } = stripInvisible(this.#hidden.join(''));
    const lines = [...text.split('\n'), hidden]
      .map((line) => line.replace(/\s+/g, ' ').trim())
      .filter((line) => /[\p{L}\p{N}]/u.test(line));
    return {
      html: this.#kept.length === 0 ? this.#source : this.#kept.join('') + this.#source.slice(this.#keptTo),
      hidden: lines.join('\n').slice(0, MAX_HIDDEN_CHARACTERS),
      hasMismatchedLink: this.#hasMismatchedLink,
    };
  }

  #openElement(name: string, attributes: Record<string, string>, parser: Parser): void {
    const parent = this.#open.at(-1);
    const above = parent?.appearance ?? ROOT;
    const appearance = above.isGone ? above : deriveAppearance(above, { name, attributes }, this.#sheet);
    const isConcealedLink = name === 'a' && !appearance.isGone && isConcealed(appearance);
    if (isConcealedLink) this.#remove(parser.startIndex, parser.endIndex + 1);
    this.#open.push({
      appearance,
      isRaw: parent?.isRaw === true || UNDISPLAYED_ELEMENTS.has(name),
      removedFrom: appearance.isGone && !above.isGone ? parser.startIndex : null,
      isConcealedLink,
    });
    if (!INLINE.has(name)) this.#collect('\n');
    if (name === 'a' && attributes.href !== undefined) this.#link = { href: attributes.href, text: '' };
  }

  #readText(text: string, parser: Parser): void {
    const element = this.#open.at(-1);
    if (element?.isRaw) return;
    const { isGone } = element?.appearance ?? ROOT;
    if (element !== undefined && isConcealed(element.appearance)) {
      this.#collect(text);
      if (!isGone && text.trim() !== '') this.#remove(parser.startIndex, parser.endIndex + 1);
    } else if (this.#link !== null && this.#link.text.length < MAX_LINK_TEXT) this.#link.text += text;
  }

  #readComment(text: string): void {
    const isMarkup = /[<>{}]|^\s*\[(?:if|endif)/i.test(text);
    const words = isMarkup ? [] : text.slice(0, MAX_HIDDEN_CHARACTERS).trim().split(/\s+/);
    if (words.length >= MIN_COMMENT_WORDS) this.#collect(`\n${words.join(' ')}\n`);
  }

  #closeElement(name: string, implied: boolean, parser: Parser): void {
    const element = this.#open.pop();
    const end = implied ? parser.startIndex : parser.endIndex + 1;
    if (!INLINE.has(name)) this.#collect('\n');
    if (name === 'a' && this.#link !== null) {
      this.#hasMismatchedLink ||= hasMismatchedHost(this.#link.text, this.#link.href);
      this.#link = null;
    }
    if (element?.removedFrom != null) this.#remove(element.removedFrom, end);
    else if (element?.isConcealedLink && !implied) this.#remove(parser.startIndex, end);
  }

  #remove(start: number, end: number): void {
    const to = Math.min(end, this.#source.length);
    if (start < this.#keptTo || to <= start) return;
    this.#kept.push(this.#source.slice(this.#keptTo, start));
    this.#keptTo = to;
  }

  #collect(text: string): void {
    if (this.#hiddenLength >= MAX_COLLECTED_CHARACTERS) return;
    if (text === '\n' && this.#hidden.at(-1) === '\n') return;
    this.#hidden.push(text.slice(0, MAX_COLLECTED_CHARACTERS));
    this.#hiddenLength += text.length;
  }
}
