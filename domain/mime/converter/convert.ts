import { htmlToText } from '../html-to-text.ts';
import { sanitizeHtml } from '../sanitize-html.ts';
import type { Conversion } from './protocol.ts';

/**
 * Runs a conversion in this process, synchronously.
 *
 * @param timeoutMs after this time, a simpler conversion applies.
 */
export function convert(html: string, conversion: Conversion, timeoutMs?: number): string {
  return conversion.to === 'text' ? htmlToText(html, timeoutMs) : sanitizeHtml(html, conversion, timeoutMs);
}
