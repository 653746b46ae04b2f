import type { Readable, Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import { convert } from './convert.ts';
import { type Conversion, FRAME } from './protocol.ts';

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
