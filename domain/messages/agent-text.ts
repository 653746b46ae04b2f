import { readNewText } from '../mime/new-text.ts';
import type { ListedMessage } from './message-details.ts';

/** The text of a message for an agent, or a part of it. */
export interface AgentText {
  text: string;
  /** More follows. */
  isTruncated: boolean;
  /** Where the rest starts; null if nothing follows. */
  nextOffset: number | null;
}

/** What a list shows of each text. */
export const LISTED_CHARACTERS = 500;
export const DEFAULT_CHARACTERS = 20_000;
/** What a list reads of each body: the text gets shorter when long URLs do. */
export const READ_CHARACTERS = 4_000;
/** A longer URL is for tracking or holds a token: the links of a message have it whole. */
const MAX_URL_CHARACTERS = 80;
const LONG_URL = new RegExp(`(https?://[^\\s<>/?#]{1,255})[^\\s<>]{${MAX_URL_CHARACTERS - 20},9000}`, 'gi');

/** Cuts a text, never within a character. @param offset of a former part; beyond the end, the text is empty. */
export function cutText(
  text: string,
  { offset = 0, maxCharacters }: { offset?: number; maxCharacters: number },
): AgentText {
  let end = Math.min(text.length, offset + maxCharacters);
  const isPairSplit = end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? '') && end - offset > 1;
  if (isPairSplit) end -= 1;
  const isTruncated = end < text.length;
  return { text: text.slice(offset, end).toWellFormed(), isTruncated, nextOffset: isTruncated ? end : null };
}

/** Shortens the URLs that are longer than {@link MAX_URL_CHARACTERS} to their host. */
export function shortenUrls(text: string): string {
  return text.replace(LONG_URL, (url: string, host: string) =>
    url.length > MAX_URL_CHARACTERS ? `${host}/…` : url,
  );
}

/**
 * The text of a message of a list, or of the response to a change: no conversion takes long. Of a sent message, the start
 * of its text body, or its preview.
 */
export function readShortText(message: ListedMessage, maxCharacters: number): AgentText {
  const { direction, extractedText } = message;
  const text = direction === 'inbound' ? (extractedText ?? '') : readStartOfText(message);
  return cutText(shortenUrls(text), { maxCharacters });
}

/** The start of what a sent message says. */
export function readStartOfText({ textBody, preview }: Pick<ListedMessage, 'textBody' | 'preview'>): string {
  const start = textBody?.slice(0, READ_CHARACTERS) ?? '';
  return start.trim() === '' ? preview : readNewText(start, { from: 'text', as: 'text' });
}
