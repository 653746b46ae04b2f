const PREVIEW_CHARACTERS = 200;
/** Sufficient input for a preview. */
const MAX_INPUT = 20_000;

/** Returns the start of a body on one line, for lists. */
export function createPreview(textBody: string | null, htmlBody: string | null): string {
  const source = textBody?.trim() ? textBody.slice(0, MAX_INPUT) : stripMarkup(htmlBody ?? '');
  const line = source.replace(/\s+/g, ' ').trim();
  return [...line].slice(0, PREVIEW_CHARACTERS).join('');
}

/** Neither expression rescans text: an opener without its end costs as much as its length. */
const HIDDEN_START = /<(style|script|head)(?![a-z-])[^<>]*>/gi;
const HIDDEN_END = /<\/(style|script|head)>/gi;
const TAG = /<[^<>]*>/g;

/** A simplified conversion that is sufficient for a preview. */
function stripMarkup(html: string): string {
  return removeHiddenElements(html.slice(0, MAX_INPUT))
    .replace(TAG, ' ')
    .replace(/&nbsp;/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&');
}

/** Removes elements whose content is not displayed, up to their end tag. */
function removeHiddenElements(html: string): string {
  const ends = Map.groupBy(html.matchAll(HIDDEN_END), ([, name = '']) => name.toLowerCase());
  const kept: string[] = [];
  let keptTo = 0;
  for (const { index, 1: name = '' } of html.matchAll(HIDDEN_START)) {
    if (index < keptTo) continue;
    const candidates = ends.get(name.toLowerCase()) ?? [];
    while (candidates[0] && candidates[0].index < index) candidates.shift();
    const end = candidates[0];
    if (!end) continue;
    kept.push(html.slice(keptTo, index));
    keptTo = end.index + end[0].length;
  }
  return [...kept, html.slice(keptTo)].join(' ');
}
