import type { Readable, Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import { htmlToText } from '../html-to-text.ts';
import { type NewTextOptions, readNewText } from '../new-text.ts';
import { type SanitizeOptions, sanitizeHtml } from '../sanitize-html.ts';
import { removeHidden } from '../visible/separate-hidden.ts';

/**
 * Runs a conversion in this process, synchronously. Text that people cannot see is left out.
 *
 * @param timeoutMs after this time, a simpler conversion applies.
 */
export function convert(html: string, conversion: Conversion, timeoutMs?: number): string {
  if (conversion.to === 'newText') return readNewText(html, conversion, timeoutMs);
  return conversion.to === 'text'
    ? htmlToText(removeHidden(html, timeoutMs), timeoutMs)
    : sanitizeHtml(html, conversion, timeoutMs);
}

/** A conversion: the format of the result and its options. */
export type Conversion =
  | ({ to: 'html' } & SanitizeOptions)
  | { to: 'text' }
  | ({ to: 'newText' } & NewTextOptions);

/**
 * Protocol between the converter pool and its child processes (`platform/frames.ts`). The pool sends `conversion` as JSON,
 * then the HTML as `source`. The child sends `result`.
 */
export const FRAME = { conversion: 'c', source: 's', result: 'r' } as const;

/** Ten times the limit of the functions, because this process does nothing else. HTML of the maximum length takes a second. */
const TIMEOUT_MS = 5_000;

/** Converts one HTML source after another until the input ends. */
export async function runConverterChild(input: Readable, output: Writable): Promise<void> {
  let conversion: Conversion | undefined;
  for await (const { type, payload } of readFrames(input)) {
    if (type === FRAME.conversion) conversion = JSON.parse(payload.toString()) as Conversion;
    else if (type === FRAME.source && conversion)
      await writeFrame(
        output,
        FRAME.result,
        Buffer.from(convert(payload.toString(), conversion, TIMEOUT_MS)),
      );
  }
}
