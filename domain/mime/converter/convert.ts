import { htmlToText } from '../html-to-text.ts';
import { sanitizeHtml } from '../sanitize-html.ts';
import { removeHidden } from '../visible/separate-hidden.ts';
import type { Conversion } from './protocol.ts';

/**
 * Runs a conversion in this process, synchronously. Text that people cannot see is left out.
 *
 * @param timeoutMs after this time, a simpler conversion applies.
 */
export function convert(html: string, conversion: Conversion, timeoutMs?: number): string {
  return conversion.to === 'text'
    ? htmlToText(removeHidden(html, timeoutMs), timeoutMs)
    : sanitizeHtml(html, conversion, timeoutMs);
}
