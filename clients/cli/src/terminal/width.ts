import { eastAsianWidth } from 'get-east-asian-width';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Columns that a terminal gives to a text, counted by grapheme, so that 👩‍💻 is two and é is one. */
export function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** Cuts a text to a width, and shows that it did by `…`. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const next = used + graphemeWidth(segment);
    if (next > width - 1) break;
    kept += segment;
    used = next;
  }
  return width > 0 ? `${kept}…` : '';
}

export const padTo = (text: string, width: number): string =>
  `${text}${' '.repeat(Math.max(0, width - widthOf(text)))}`;

function graphemeWidth(grapheme: string): number {
  if (/^\p{M}+$/u.test(grapheme)) return 0;
  if (/\ufe0f|\p{Emoji_Presentation}/u.test(grapheme)) return 2;
  return eastAsianWidth(grapheme.codePointAt(0) ?? 0);
}
