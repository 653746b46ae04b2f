import { compile } from 'html-to-text';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { limitNesting } from './limit-nesting.ts';

/** Longer HTML is truncated before the conversion, because the conversion time grows with the length. */
export const MAX_HTML_CHARACTERS = 524_288;

const convert = compile({
  wordwrap: false,
  limits: { maxInputLength: MAX_HTML_CHARACTERS, maxDepth: 200, ellipsis: '' },
  selectors: [
    {
      selector: 'a',
      options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['<', '>'], noAnchorUrl: true },
    },
    { selector: 'img', format: 'skip' },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
    { selector: 'blockquote', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
  ],
});

/** Ordinary HTML of the maximum length takes 100 ms. A message may need two conversions. */
const CONVERT_TIMEOUT_MS = 500;

/**
 * Converts HTML to the visible text, one line per paragraph, with link targets in angle brackets.
 *
 * @param timeoutMs after this time, the result is the text between the tags.
 */
export function htmlToText(html: string, timeoutMs: number = CONVERT_TIMEOUT_MS): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  const text = runWithTimeout(timeoutMs, () => convert(limitNesting(source))) ?? stripTags(source);
  return text.replaceAll('\u00a0', ' ').trim();
}

/** The fallback for HTML whose conversion times out: the text between the tags. */
function stripTags(html: string): string {
  const texts: string[] = [];
  for (let at = 0; at !== -1; ) {
    const open = html.indexOf('<', at);
    texts.push(html.slice(at, open === -1 ? undefined : open));
    const close = open === -1 ? -1 : html.indexOf('>', open);
    at = close === -1 ? -1 : close + 1;
  }
  return texts.filter((text) => text.trim() !== '').join(' ');
}
