import { compile } from 'html-to-text';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';

/** Beyond this many characters HTML is cut before it is read; conversion time grows with it. */
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

/** Ordinary HTML of this length takes a fifth; deep nesting makes the parsers slow. One mail may be converted twice. */
const CONVERT_TIMEOUT_MS = 500;

/** The text a reader of the HTML would see, one paragraph a line; links keep their target in angle brackets. */
export function htmlToText(html: string): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  const text = runWithTimeout(CONVERT_TIMEOUT_MS, () => convert(source)) ?? stripTags(source);
  return text.replaceAll('\u00a0', ' ').trim();
}

/** For HTML nobody writes: what stands between the tags. */
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
