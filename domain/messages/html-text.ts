import { compile } from 'html-to-text';

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

/** The text a reader of the HTML would see, one paragraph a line; links keep their target in angle brackets. */
export function textFromHtml(html: string): string {
  return convert(html.slice(0, MAX_HTML_CHARACTERS)).replaceAll('\u00a0', ' ').trim();
}
