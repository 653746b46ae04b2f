import type { Readable, Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import type { FileName } from './detect-format.ts';
import { readFileText } from './read-file.ts';

/**
 * Protocol between the file reader and its child processes (`platform/frames.ts`). The reader sends the name and type as
 * JSON, then the file as `source`. The child sends a {@link FileText} as JSON.
 */
export const FRAME = { name: 'n', source: 's', result: 'r' } as const;

/** Reads one file after another until the input ends. */
export async function runFileReaderChild(input: Readable, output: Writable): Promise<void> {
  let name: FileName | undefined;
  for await (const { type, payload } of readFrames(input)) {
    if (type === FRAME.name) name = JSON.parse(payload.toString()) as FileName;
    else if (type === FRAME.source && name)
      await writeFrame(output, FRAME.result, Buffer.from(JSON.stringify(await readFileText(payload, name))));
  }
}
