const PREVIEW_CHARACTERS = 200;
/** Sufficient input for a preview. */
const MAX_INPUT = 20_000;

/** Returns the start of a body on one line, for lists. */
export function createPreview(textBody: string | null, htmlBody: string | null): string {
  const source = textBody?.trim() ? textBody.slice(0, MAX_INPUT) : stripMarkup(htmlBody ?? '');
  const line = source.replace(/\s+/g, ' ').trim();
  return [...line].slice(0, PREVIEW_CHARACTERS).join('');
}

/** A simplified conversion that is sufficient for a preview. */
function stripMarkup(html: string): string {
  return html
    .slice(0, MAX_INPUT)
    .replace(/<(style|script|head)[^>]*>[\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&nbsp;/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&');
}
