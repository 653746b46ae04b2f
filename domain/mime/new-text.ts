import { htmlToMarkdown } from './html-to-markdown.ts';
import { readMessageText } from './message-text.ts';
import { extractReply } from './quotes/extract-reply.ts';
import { removeZeroWidth } from './visible/invisible-characters.ts';
import { removeHidden } from './visible/separate-hidden.ts';
import { writeOutHtmlWithTimeout } from './write-out-html.ts';

export const TEXT_FORMATS = ['text', 'markdown'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

export interface NewTextOptions {
  /** What the body is. */
  from: 'text' | 'html';
  as: TextFormat;
}

/** Reads what is new and visible in a body, as `extracted_text` has it, or as Markdown. Plain text stays plain. */
export function readNewText(body: string, { from, as }: NewTextOptions, timeoutMs?: number): string {
  if (from === 'text') return readMessageText({ text: body, html: null }, timeoutMs).message.extractedText;
  if (as === 'text') return readMessageText({ text: null, html: body }, timeoutMs).message.extractedText;
  const html = writeOutHtmlWithTimeout(removeHidden(body, timeoutMs), timeoutMs);
  return removeZeroWidth(extractReply({ text: null, html }, timeoutMs, htmlToMarkdown)).trim();
}
