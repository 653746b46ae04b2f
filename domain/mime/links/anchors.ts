import { Parser } from 'htmlparser2';
import { MAX_HTML_CHARACTERS } from '../html-to-text.ts';
import { limitNesting } from '../limit-nesting.ts';
import { readMark } from '../quotes/html-quotes.ts';
import { UNDISPLAYED_ELEMENTS } from '../undisplayed-elements.ts';

/** A link as it is written. */
export interface Anchor {
  href: string;
  words: string;
  /** The end of the text before the link. */
  before: string;
  isQuoted: boolean;
}

export const MAX_ANCHORS = 10_000;
const MAX_WORDS = 300;
const MAX_BEFORE = 300;
const INLINE = new Set(
  'a abbr b bdi bdo big cite code em font i kbd mark q s small span strong sub sup u var wbr'.split(' '),
);

/**
 * Reads the links of visible HTML, at most {@link MAX_ANCHORS}, in one pass without a tree.
 *
 * @param html with the marks of `markHtmlQuotes`, which tell what is quoted.
 */
export function readAnchors(html: string): Anchor[] {
  const source = limitNesting(html.slice(0, 2 * MAX_HTML_CHARACTERS));
  const anchors: Anchor[] = [];
  let before = '';
  let open: Anchor | null = null;
  let rawDepth = 0;
  /** Quoted regions that are open; a divider quotes all that follows. */
  const regions: boolean[] = [];
  let isPastDivider = false;
  const isQuoted = () => isPastDivider || regions.includes(true);
  const parser = new Parser({
    onopentag(name, attributes) {
      if (UNDISPLAYED_ELEMENTS.has(name)) rawDepth += 1;
      if (!INLINE.has(name)) before = `${before} `.slice(-MAX_BEFORE);
      if (name !== 'a' || attributes.href === undefined || anchors.length >= MAX_ANCHORS) return;
      open = { href: attributes.href, words: '', before: before.trim(), isQuoted: isQuoted() };
      anchors.push(open);
    },
    ontext(text) {
      if (rawDepth > 0) return;
      const mark = readMark(text);
      if (mark === 'end') regions.pop();
      else if (mark === 'cut') isPastDivider = true;
      else if (mark !== null) regions.push(mark === 'quoted');
      else {
        const words = text.slice(0, MAX_WORDS).replace(/\s+/g, ' ');
        if (open && open.words.length < MAX_WORDS) open.words += words;
        before = (before + text.slice(-MAX_BEFORE).replace(/\s+/g, ' ')).slice(-MAX_BEFORE);
      }
    },
    onclosetag(name) {
      if (UNDISPLAYED_ELEMENTS.has(name)) rawDepth = Math.max(0, rawDepth - 1);
      if (name === 'a') open = null;
    },
  });
  parser.end(source);
  return anchors.map((anchor) => ({ ...anchor, words: anchor.words.trim().slice(0, MAX_WORDS) }));
}
