import { htmlToText } from './html-to-text.ts';
import { createPreview } from './preview.ts';
import { extractReply } from './quotes/extract-reply.ts';
import { removeZeroWidth, stripInvisible } from './visible/invisible-characters.ts';
import { MAX_HIDDEN_CHARACTERS, separateHiddenWithTimeout } from './visible/separate-hidden.ts';
import { writeOutHtmlWithTimeout } from './write-out-html.ts';

const MAX_PREVIEW_SOURCE = 20_000;

/** The text of a received message for agents. */
export interface MessageText {
  /** See {@link extractReply}. Does not contain text that people cannot see. */
  extractedText: string;
  preview: string;
  /** The text that people cannot see; null if there is none. At most 10,000 characters. */
  hiddenText: string | null;
  /** The words of a link show another host than that of its target. */
  hasMismatchedLink: boolean;
}

/** A text with the HTML that people can see; null if there is no HTML body. */
export interface VisibleMessage {
  message: MessageText;
  visibleHtml: string | null;
}

/** Reads both bodies of a message. Time and memory are proportional to their length. */
export function readMessageText(
  { text, html }: { text: string | null; html: string | null },
  timeoutMs?: number,
): VisibleMessage {
  const plain = text === null ? null : stripInvisible(text);
  const visible = html === null ? null : separateHiddenWithTimeout(html, timeoutMs);
  const visibleHtml = visible === null ? null : writeOutHtmlWithTimeout(visible.html, timeoutMs);
  const bodies = { text: plain?.text ?? null, html: visibleHtml };
  const extracted = stripInvisible(extractReply(bodies, timeoutMs));
  const extractedText = removeZeroWidth(extracted.text).trim();
  const hidden = [visible?.hidden, plain?.hidden, plain?.hidden ? '' : extracted.hidden]
    .filter(Boolean)
    .join('\n');
  const message = {
    extractedText,
    preview: createPreview(extractedText || readAnyText(bodies, timeoutMs), null),
    hiddenText: hidden === '' ? null : hidden.slice(0, MAX_HIDDEN_CHARACTERS),
    hasMismatchedLink: visible?.hasMismatchedLink ?? false,
  };
  return { message, visibleHtml };
}

/** Used for a reply that contains only quotes. */
function readAnyText(
  { text, html }: { text: string | null; html: string | null },
  timeoutMs?: number,
): string {
  if (text?.trim() || html === null) return text ?? '';
  return stripInvisible(htmlToText(html.slice(0, MAX_PREVIEW_SOURCE), timeoutMs)).text;
}
