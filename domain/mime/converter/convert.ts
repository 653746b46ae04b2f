import { htmlToText } from '../html-to-text.ts';
import { sanitizeHtml } from '../sanitize-html.ts';
import type { Conversion } from './protocol.ts';

/** Runs a conversion in this process, synchronously. */
export function convert(html: string, conversion: Conversion): string {
  return conversion.to === 'text' ? htmlToText(html) : sanitizeHtml(html, conversion);
}
